import type { KvTurn } from '../kv-connector.ts'
import type { SlotClaim } from './claim.ts'
import { lookAtPod } from './look.ts'
import type { Parts } from './parts.ts'
import { perhapsLeftBy } from './slot-evidence.ts'

/**
 * A turn that had no slot of its own on the pod that served it ran in whichever slot the engine chose. Notes where, so that its KV goes with
 * the session, and with the next sweep. Faults cost only that.
 */
export const noteStray = async (
  parts: Parts,
  stray: { readonly turn: KvTurn; readonly claim: SlotClaim; readonly totalTokens: number | undefined },
  signal: AbortSignal,
): Promise<void> => {
  const { turn, claim, totalTokens } = stray
  const view = await lookAtPod(parts, turn.pod, signal)
  if (view.kind === 'failed') {
    parts.log.debug('where a turn without a slot ran is unknown', { pod: turn.pod, err: view.cause })
    return
  }
  const tasksBefore = claim.kind === 'none' ? claim.tasksBefore : undefined
  for (const { id } of perhapsLeftBy({ tasksBefore, totalTokens }, view.slots)) {
    await parts.ledger.addTrace({ pod: turn.pod, slot: id, session: turn.session })
  }
}

/** Which slots need not be compared with the ledger any more. */
export interface StrayWatch {
  isSettled(pod: string, slot: number): boolean
  sawIdle(pod: string, slot: number): void
}

/** `watchMs`: how long after the start of this process Envoy may still forward turns without it. */
export const createStrayWatch = (watchMs: number): StrayWatch => {
  const startedMs = performance.now()
  const settled = new Set<string>()
  return {
    isSettled: (pod, slot) => settled.has(`${pod}|${slot}`),
    sawIdle: (pod, slot) => {
      if (performance.now() - startedMs >= watchMs) settled.add(`${pod}|${slot}`)
    },
  }
}

/** Lets go what a failed turn took, and notes what it may have left where it took nothing. */
export const detach = async (parts: Parts, turn: KvTurn, claim: SlotClaim, signal: AbortSignal): Promise<void> => {
  try {
    if (claim.kind === 'slot') {
      await parts.ledger.release({ pod: claim.pod, slot: claim.slot, turnId: turn.turnId })
    }
    const ranElsewhere = claim.kind === 'none' || claim.pod !== turn.pod
    if (ranElsewhere) await noteStray(parts, { turn, claim, totalTokens: undefined }, signal)
  } catch (err) {
    parts.log.warn('a turn could not be let go', { pod: turn.pod, err })
  }
}
