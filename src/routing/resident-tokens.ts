import type { PodAddress } from './pod.ts'
import type { RoutingInput } from './routing-policy.ts'

/**
 * Tokens of the session that a pod probably still holds, 0 for none. Of the pod that served it last at least as many as are stored, or one
 * where their number is not known.
 */
export const residentTokensIn = (turn: RoutingInput, address: PodAddress): number => {
  if (turn.residentTokens !== undefined) return turn.residentTokens.get(address) ?? 0
  return turn.lastPod === address ? Math.max(1, turn.stored?.tokens ?? 0) : 0
}
