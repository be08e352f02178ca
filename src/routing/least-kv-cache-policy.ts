import type { PodState } from './pod.ts'
import { leastLoaded } from './pod-load.ts'
import { type RandomSource, randomChoice } from './random-choice.ts'
import type { RoutingPolicy } from './routing-policy.ts'

/** `least-kv-cache`: the pod whose KV memory is used least, by its own account; of equals the least loaded, then by chance. */
export const createLeastKvCachePolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'least-kv-cache',
  pick: (_turn, pods) => {
    const [first, ...others] = pods
    let best: [PodState, ...PodState[]] = [first]
    for (const pod of others) {
      if (pod.kvUsage < best[0].kvUsage) best = [pod]
      else if (pod.kvUsage === best[0].kvUsage) best.push(pod)
    }
    return randomChoice(leastLoaded(best), options.random)
  },
})
