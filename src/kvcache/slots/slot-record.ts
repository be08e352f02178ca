import type { SessionKey } from '../../sessions/session-record.ts'
import type { ReportedSlot, SlotContent } from './slot-ledger.ts'

/** What the memory ledger keeps of one slot. The Redis scripts keep the same fields as JSON. */
export interface SlotRecord {
  readonly pod: string
  readonly slot: number
  owner: SessionKey | undefined
  /** Earlier owners whose KV nobody has wiped or overwritten yet. */
  residues: readonly SessionKey[]
  content: SlotContent
  loader: { readonly turnId: string; readonly untilMs: number } | undefined
  closedUntilMs: number
  /** The turn that closed the slot, and may open it. */
  closedBy: string | undefined
  /** End of each lease by turn. */
  readonly leases: Map<string, number>
  /** Ordinal of the last claim, over all slots. */
  used: number
  revision: number
}

/** A slot that was never claimed: what lies there is unknown. */
export const newSlotRecord = (pod: string, slot: number): SlotRecord => ({
  pod,
  slot,
  owner: undefined,
  residues: [],
  content: { kind: 'unknown' },
  loader: undefined,
  closedUntilMs: 0,
  closedBy: undefined,
  leases: new Map(),
  used: 0,
  revision: 0,
})

/** Ends what has run out. A loader that did not settle in time leaves unknown content. */
export const expire = (record: SlotRecord, nowMs: number): void => {
  for (const [turnId, untilMs] of record.leases) if (untilMs <= nowMs) record.leases.delete(turnId)
  if (record.loader !== undefined && record.loader.untilMs <= nowMs) endLoad(record)
}

/** Takes the loader away without a result. */
export const endLoad = (record: SlotRecord): void => {
  record.loader = undefined
  record.content = { kind: 'unknown' }
  record.revision += 1
}

/** A turn or a cleaner works on the slot, or it is closed. Call `expire` before. */
export const isInUse = (record: SlotRecord, nowMs: number): boolean =>
  record.leases.size > 0 || record.loader !== undefined || record.closedUntilMs > nowMs

export const needsWipe = (record: SlotRecord, nowMs: number): boolean =>
  !isInUse(record, nowMs) && (record.content.kind === 'unknown' || record.residues.length > 0)

const contentRank = { holds: 0, clean: 1, unknown: 2 } as const

/** The best slot for a turn of `session`, of those its engine reported; undefined: there is no room. */
export const chooseSlot = (
  reported: readonly ReportedSlot[],
  find: (slot: number) => SlotRecord | undefined,
  turn: { readonly session: SessionKey; readonly turnId: string; readonly nowMs: number },
): number | undefined => {
  const candidates = reported
    .map((slot) => ({ ...slot, record: find(slot.id) }))
    .filter(({ record }) => record === undefined || record.closedUntilMs <= turn.nowMs)
  const own = candidates
    .flatMap(({ id, idle, record }) => (record?.owner === turn.session ? [{ id, idle, record }] : []))
    .filter(({ idle, record }) => idle || record.leases.size > 0)
    .sort(
      (a, b) =>
        Number(b.record.leases.has(turn.turnId)) - Number(a.record.leases.has(turn.turnId)) ||
        Number(b.record.leases.size > 0) - Number(a.record.leases.size > 0) ||
        contentRank[a.record.content.kind] - contentRank[b.record.content.kind] ||
        b.record.used - a.record.used ||
        a.id - b.id,
    )
  if (own[0] !== undefined) return own[0].id
  const others = candidates
    .filter(({ idle, record }) => idle && (record === undefined || !isInUse(record, turn.nowMs)))
    .sort(
      (a, b) =>
        Number(a.record?.owner !== undefined) - Number(b.record?.owner !== undefined) ||
        (a.record?.used ?? 0) - (b.record?.used ?? 0) ||
        a.id - b.id,
    )
  return others[0]?.id
}
