import { LRUCache } from 'lru-cache'
import type { SessionKey } from '../../sessions/session-record.ts'
import { lateEndMs, type ReportedSlot, type SlotContent, type SlotLedger, type SlotTurn } from './slot-ledger.ts'

/** The Redis scripts keep the same fields as JSON. */
interface SlotRecord {
  readonly owner?: SessionKey | undefined
  readonly content?: SlotContent | undefined
  /** The turn that holds the slot, until it is released or another turn takes it. */
  readonly turnId?: string | undefined
  /** The session of that turn. */
  readonly user?: SessionKey | undefined
  readonly untilMs: number
  readonly saving: boolean
  /** That turn computes most of its prompt. */
  readonly isLong?: boolean | undefined
  /** The last completion in the slot when the turn claimed it. */
  readonly task?: number | undefined
  /** Ordinal of the last claim in the pod. */
  readonly used: number
}

const unused: SlotRecord = { untilMs: 0, saving: false, used: 0 }

/** Pods come and go. What is forgotten of one is erased by the next sweep. */
const maxPods = 10_000

/** A ledger for one gateway process. `now` is its clock in milliseconds; only differences count. */
export const createMemorySlotLedger = ({ now = () => performance.now() } = {}): SlotLedger => {
  const pods = new LRUCache<string, Map<number, SlotRecord>>({ max: maxPods, memoMethod: () => new Map() })
  const recordsOf = (pod: string): Map<number, SlotRecord> => pods.memo(pod)
  const isHeld = ({ turnId, untilMs }: SlotRecord, lateMs = 0) => turnId !== undefined && untilMs + lateMs > now()
  let released = (_pod: string): void => {}
  /** The record of a slot that this turn holds. */
  const heldBy = ({ pod, slot, turnId }: SlotTurn): SlotRecord | undefined => {
    const record = recordsOf(pod).get(slot)
    return record?.turnId === turnId ? record : undefined
  }

  return {
    claim: async ({ pod, session, turnId, leaseMs, artefactId, isLong = false, mayWait, slots }) => {
      const records = recordsOf(pod)
      const all = [...records.values()]
      const held = all.filter(({ user = session, ...record }) => user === session && isHeld(record))
      const hasRun = (slot: ReportedSlot): boolean => {
        const record = records.get(slot.id) ?? unused
        return isHeld(record) && record.user === session && !record.saving && slot.idle && slot.task !== record.task
      }
      if (held.some(({ saving }) => saving) || (mayWait && slots.some(hasRun))) return { kind: 'wait' }
      const rankOf = (slot: ReportedSlot): readonly number[] => {
        const { owner, content, used } = records.get(slot.id) ?? unused
        const isOwn = owner === session
        const hasArtefact = isOwn && artefactId !== undefined && content?.artefactId === artefactId
        if (hasRun(slot)) return [-1, used, slot.id]
        if (isOwn) return [hasArtefact ? 0 : 1, used, slot.id]
        // Also where a lower slot is empty: engines compute its prompt before those of the slots above it.
        if (isLong) return [2, -slot.id]
        return [owner === undefined ? 2 : 3, used, slot.id]
      }
      const isFree = (slot: ReportedSlot): boolean =>
        slot.idle && (hasRun(slot) || !isHeld(records.get(slot.id) ?? unused))
      const isOfLongTurn = ({ id }: ReportedSlot): boolean => {
        const record = records.get(id) ?? unused
        return !isHeld(record) || record.isLong === true
      }
      const longTurns = slots.filter((slot) => !isFree(slot) && isOfLongTurn(slot)).length
      const isKept = isLong && slots.length > 1 && longTurns + 1 >= slots.length
      const [best] = slots
        .filter(isFree)
        .map((slot) => ({ slot: slot.id, task: slot.task, rank: rankOf(slot) }))
        .sort((a, b) => compare(a.rank, b.rank))
      if (best === undefined || isKept) return { kind: mayWait && held.length > 0 ? 'wait' : 'no-room' }
      const { owner, content } = records.get(best.slot) ?? unused
      const used = Math.max(0, ...all.map((record) => record.used)) + 1
      const untilMs = now() + leaseMs
      records.set(best.slot, { owner, turnId, user: session, untilMs, saving: false, isLong, task: best.task, used })
      return { kind: 'claimed', slot: best.slot, content: owner === session ? content : undefined }
    },
    renew: async (turns, { leaseMs, saving = false }) =>
      turns.map((turn) => {
        const record = heldBy(turn)
        if (record === undefined) return false
        recordsOf(turn.pod).set(turn.slot, { ...record, untilMs: now() + leaseMs, saving: record.saving || saving })
        return true
      }),
    release: async ({ content, ...turn }) => {
      const record = heldBy(turn)
      if (record === undefined) return
      const left = content === undefined ? record : { owner: record.user, content }
      recordsOf(turn.pod).set(turn.slot, { ...unused, used: record.used, owner: left.owner, content: left.content })
      released(turn.pod)
    },
    onRelease: (listener) => {
      released = listener
    },
    list: async (pod) =>
      [...recordsOf(pod)].map(([slot, record]) => {
        const { owner, content, user } = record
        return { slot, owner, content, inUse: isHeld(record, user && lateEndMs), user }
      }),
    seize: async ({ pod, slot, turnId, leaseMs, session }) => {
      const record = recordsOf(pod).get(slot) ?? unused
      if (isHeld(record)) return undefined
      const { owner, content, used } = record
      const untilMs = now() + leaseMs
      recordsOf(pod).set(slot, { owner, content, used, turnId, user: session, untilMs, saving: session !== undefined })
      return { owner, content }
    },
  }
}

/** Orders lists of equal length, lower first. */
const compare = (a: readonly number[], b: readonly number[]): number => {
  const index = a.findIndex((value, at) => value !== b[at])
  return (a[index] ?? 0) - (b[index] ?? 0)
}
