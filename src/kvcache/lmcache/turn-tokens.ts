import { withinLimit } from '../../async/deadline.ts'
import type { EndedTurn } from '../kv-connector.ts'
import type { Claim } from './claim.ts'
import type { Parts } from './parts.ts'

/**
 * The tokens of the longest prefix whose KV a turn is known to have left in its pod, by the pod's events. Undefined: nobody can tell. The last token of
 * an answer was never computed, so all blocks before it are to be expected.
 */
export const tokensOfTurn = (parts: Parts, turn: EndedTurn, claim: Claim): Promise<Uint32Array | undefined> => {
  const { totalTokens } = turn
  const expected = totalTokens === undefined ? 1 : Math.floor((totalTokens - 1) / claim.blockTokens) * claim.blockTokens
  return withinLimit(
    parts.limits.settleMs,
    (signal) => parts.events.turnTokens(turn.pod, { turnId: turn.turnId, minTokens: expected }, signal),
    turn.signal,
  )
}
