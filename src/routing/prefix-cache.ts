import { leastLoaded, lowest, type PodAddress, podLoad, type RandomSource, randomPod } from './pod.ts'
import type { PickPod, RoutingInput } from './router.ts'
import { loadLimit, type Stickiness } from './session-affinity.ts'

/**
 * Tokens of the session that a pod probably holds; 0 for none. If nothing is known of the session (after a restart, or
 * when another process served it), its last pod is taken to hold what is stored, or one token where that is unknown.
 */
export const residentTokensIn = (turn: RoutingInput, address: PodAddress): number => {
  const { residentTokens } = turn
  if (residentTokens !== undefined && residentTokens.size > 0) return residentTokens.get(address) ?? 0
  return turn.lastPod === address ? Math.max(1, turn.stored?.tokens ?? 0) : 0
}

/** `prefix-cache`: of pods not overloaded, the one with most of the session; then the least loaded, then random. */
export const createPrefixCachePolicy =
  (options: { readonly stickiness: Stickiness; readonly random: RandomSource }): PickPod =>
  (turn, pods) => {
    const limit = loadLimit(options.stickiness, leastLoaded(pods)[0])
    // The tokens of an overloaded pod do not count.
    const best = lowest(pods, (pod) => (podLoad(pod) > limit ? 0 : -residentTokensIn(turn, pod.address)))
    return randomPod(leastLoaded(best), options.random)
  }
