import { leastLoaded } from './pod-load.ts'
import { type RandomSource, randomChoice } from './random-choice.ts'
import type { RoutingPolicy } from './routing-policy.ts'

/** `least-request`: the pod with the fewest requests; by chance among equals, so that gateways side by side do not move in step. */
export const createLeastRequestPolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'least-request',
  pick: (_turn, pods) => randomChoice(leastLoaded(pods), options.random),
})
