import type { PodState } from './pod.ts'
import { leastLoaded, podLoad } from './pod-load.ts'
import { type RandomSource, randomChoice } from './random-choice.ts'
import { rendezvousOrder } from './rendezvous.ts'
import type { RoutingPolicy } from './routing-policy.ts'

/**
 * When a session stays with its pod. A pod is overloaded when its load exceeds `factor` times the least load of any pod plus `margin`;
 * a turn then goes elsewhere, although its KV has to be loaded there.
 */
export interface Stickiness {
  /** At least 1. */
  readonly factor: number
  /** Requests, at least 0. */
  readonly margin: number
}

/** The load above which a pod is overloaded, beside one of the least load. */
export const loadLimit = ({ factor, margin }: Stickiness, least: PodState): number => factor * podLoad(least) + margin

/**
 * `session-affinity`: the pod that served the session last; else, the first pod of the affinity key's rendezvous order; else, the least
 * loaded pod. An overloaded pod is passed over: a session goes to the least loaded one, another affinity key to the next in its order.
 */
export const createSessionAffinityPolicy = (options: {
  readonly stickiness: Stickiness
  readonly random: RandomSource
}): RoutingPolicy => ({
  name: 'session-affinity',
  pick: (turn, pods) => {
    const least = leastLoaded(pods)
    const limit = loadLimit(options.stickiness, least[0])
    const bears = (pod: PodState): boolean => podLoad(pod) <= limit
    const resident = pods.find((pod) => pod.address === turn.lastPod)
    if (resident !== undefined && bears(resident)) return resident
    const byKey =
      resident === undefined && turn.affinityKey !== undefined
        ? rendezvousOrder(turn.affinityKey, pods).find(bears)
        : undefined
    return byKey ?? randomChoice(least, options.random)
  },
})
