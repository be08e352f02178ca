import type { PodState } from './pod.ts'
import { leastLoaded, podLoad } from './pod-load.ts'
import { type RandomSource, randomChoice } from './random-choice.ts'
import { residentTokensIn } from './resident-tokens.ts'
import type { RoutingPolicy } from './routing-policy.ts'
import { loadLimit, type Stickiness } from './session-affinity-policy.ts'

/**
 * `prefix-cache`: of the pods that are not overloaded, the one that holds most of the session; of equals, and where none holds anything,
 * the least loaded, then by chance.
 */
export const createPrefixCachePolicy = (options: {
  readonly stickiness: Stickiness
  readonly random: RandomSource
}): RoutingPolicy => ({
  name: 'prefix-cache',
  pick: (turn, pods) => {
    const least = leastLoaded(pods)
    const limit = loadLimit(options.stickiness, least[0])
    let best: [PodState, ...PodState[]] | undefined
    let mostTokens = 0
    for (const pod of pods) {
      const tokens = residentTokensIn(turn, pod.address)
      if (tokens === 0 || tokens < mostTokens || podLoad(pod) > limit) continue
      if (best === undefined || tokens > mostTokens) best = [pod]
      else best.push(pod)
      mostTokens = tokens
    }
    return randomChoice(best === undefined ? least : leastLoaded(best), options.random)
  },
})
