import { sessionKeyOf } from '../../../src/context/session-id.ts'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import type { SlotContent } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { PodAddress } from '../../../src/routing/pod.ts'
import { turnLeaseMs } from '../gateway-parts.ts'
import type { TraceRequest } from '../trace.ts'
import type { VirtualTime } from '../virtual-time.ts'
import { type KeptKv, type KvStore, keptAfter } from './kv-store.ts'
import type { SlotPod } from './slot-pod.ts'

/** As the connector of the gateway has them. */
const pollMs = 20
const longestWaitMs = 500

/** A turn that tries a pod. */
export interface TurnInPod {
  readonly turnId: string
  readonly conversation: string
  readonly request: TraceRequest
  readonly address: PodAddress
  readonly pod: SlotPod
}

interface TryPod extends TurnInPod {
  readonly isShort: boolean
  /** How long the turn waits for its KV at most, milliseconds. */
  readonly budgetMs: number
  /** Whether loading is sooner than computing. */
  readonly isWorthLoading: (kept: KeptKv) => boolean
}

/** What a turn has in a pod. */
export interface SlotOutcome {
  /** False: the pod has no room for it. */
  readonly hasRoom: boolean
  /** Undefined: the turn holds none. */
  readonly slot: number | undefined
  /** KV of its conversation in the slot. */
  readonly present: KeptKv | undefined
  /** Undefined: `present` lay there. */
  readonly loadMs: number | undefined
}

const nothing = { slot: undefined, present: undefined, loadMs: undefined } as const

/**
 * What the connector for engines with slots does with them, by the ledger that serves traffic: a turn claims a slot,
 * where the KV of its conversation lies or is loaded, and what it leaves there is saved before another may have it.
 */
export const createSlotConnector = ({
  time,
  store,
  transferMs,
}: {
  readonly time: VirtualTime
  readonly store: KvStore
  /** How long a load or a save takes alone. */
  readonly transferMs: (tokens: number) => number
}) => {
  const ledger = createMemorySlotLedger({ now: time.nowMs })
  const lying = new Map<string, KeptKv>()
  const leaseMs = turnLeaseMs

  const residentIn = (turn: TurnInPod, slot: number, content: SlotContent | undefined): KeptKv | undefined => {
    const kept = lying.get(placeName(turn.address, slot))
    const isThere = content?.mark === turn.pod.mark(slot) && content.artefactId === kept?.artefactId
    if (kept === undefined || !isThere) return undefined
    const stored = store.find(turn.conversation)
    return stored !== undefined && stored.tokens > kept.tokens ? undefined : kept
  }

  const load = async (turn: TryPod, slot: number, kept: KeptKv, leftMs: number): Promise<SlotOutcome> => {
    const startedMs = time.nowMs()
    const loading = turn.pod.action(slot, transferMs(kept.tokens)).then(() => true)
    const inTime = await Promise.race([loading, time.sleep(leftMs).then(() => false)])
    if (inTime) return { hasRoom: true, slot, present: kept, loadMs: time.nowMs() - startedMs }
    void loading.then(() => ledger.release({ pod: turn.address, slot, turnId: turn.turnId }))
    return { hasRoom: true, ...nothing }
  }

  return {
    /** Finds or makes a slot that holds the conversation's KV. */
    prepare: async (turn: TryPod): Promise<SlotOutcome> => {
      const { turnId, conversation, address, pod, isShort, budgetMs } = turn
      const startedMs = time.nowMs()
      for (;;) {
        const waitedMs = time.nowMs() - startedMs
        const stored = store.find(conversation)
        const claimed = await ledger.claim({
          pod: address,
          session: sessionKeyOf(conversation),
          turnId,
          leaseMs,
          artefactId: stored?.artefactId,
          isLong: !isShort,
          mayWait: waitedMs < longestWaitMs,
          slots: pod.report(),
        })
        if (claimed.kind === 'no-room') return { hasRoom: false, ...nothing }
        if (claimed.kind === 'wait') {
          if (waitedMs >= budgetMs) return { hasRoom: true, ...nothing }
          await time.sleep(pollMs)
          continue
        }
        const { slot } = claimed
        const present = residentIn(turn, slot, claimed.content)
        if (present !== undefined || stored === undefined || !turn.isWorthLoading(stored))
          return { hasRoom: true, slot, present, loadMs: undefined }
        return load(turn, slot, stored, budgetMs - waitedMs)
      }
    },
    /** The turn goes on elsewhere. */
    release: (turn: TurnInPod, slot: number): Promise<void> =>
      ledger.release({ pod: turn.address, slot, turnId: turn.turnId }),
    /**
     * Saves what the turn left in the slot where it ran, and resolves to it; undefined: another turn has the slot now,
     * which a turn that held none runs into.
     */
    finish: async (turn: TurnInPod, { ran, held }: { readonly ran: number; readonly held: number | undefined }) => {
      const { turnId, conversation, address, pod, request } = turn
      const place = { pod: address, slot: ran, turnId }
      const session = sessionKeyOf(conversation)
      const isHeld =
        held === ran
          ? (await ledger.renew([place], { leaseMs, saving: true }))[0]
          : (await ledger.seize({ ...place, session, leaseMs })) !== undefined
      if (isHeld !== true) return undefined
      const kept = keptAfter(turnId, request)
      const mark = pod.mark(ran)
      await pod.action(ran, transferMs(kept.tokens))
      const isIntact = pod.mark(ran) === mark
      if (isIntact) {
        store.save(conversation, kept)
        lying.set(placeName(address, ran), kept)
      }
      const content: SlotContent = { artefactId: kept.artefactId, tokens: kept.tokens, mark }
      await ledger.release({ ...place, content: isIntact ? content : undefined })
      return isIntact ? kept : undefined
    },
  }
}

const placeName = (address: PodAddress, slot: number): string => `${address} ${slot}`
