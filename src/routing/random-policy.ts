import { type RandomSource, randomChoice } from './random-choice.ts'
import type { RoutingPolicy } from './routing-policy.ts'

/** `random`: any pod, each as likely as the others. */
export const createRandomPolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'random',
  pick: (_turn, pods) => randomChoice(pods, options.random),
})
