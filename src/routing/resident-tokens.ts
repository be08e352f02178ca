import type { PodAddress } from './pod.ts'
import type { RoutingTurn } from './routing-policy.ts'

/**
 * Tokens of the session that a pod probably still holds, 0 for none. Of the pod that served it last at least as many as are stored, or one
 * where their number is not known.
 */
export const residentTokensIn = (turn: RoutingTurn, address: PodAddress): number => {
  if (turn.residentTokens !== undefined) return turn.residentTokens.get(address) ?? 0
  return turn.residentPod === address ? Math.max(1, turn.stored?.tokens ?? 0) : 0
}
