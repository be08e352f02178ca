import { type CostEstimate, createCostModel } from './cost-model.ts'
import {
  createLeastKvCachePolicy,
  createLeastRequestPolicy,
  createRandomPolicy,
  createRoundRobinPolicy,
  type RandomSource,
} from './load-policies.ts'
import { createPredictedTtftPolicy } from './predicted-ttft.ts'
import { createPrefixCachePolicy } from './prefix-cache.ts'
import type { RoutingPolicy } from './router.ts'
import { createSessionAffinityPolicy, type Stickiness } from './session-affinity.ts'

/** Every policy by its name in the configuration and in the `routing-strategy` header. */
export const policyNames = [
  'predicted-ttft',
  'prefix-cache',
  'session-affinity',
  'least-request',
  'least-kv-cache',
  'round-robin',
  'random',
] as const

export type PolicyName = (typeof policyNames)[number]

/**
 * All policies, `defaultPolicy` first, as {@link createRouter} takes them. `random` is `Math.random` by default, `costs` a model that does
 * not learn.
 */
export const createPolicies = (options: {
  readonly defaultPolicy: PolicyName
  readonly stickiness: Stickiness
  readonly random?: RandomSource
  readonly costs?: CostEstimate
}): readonly [RoutingPolicy, ...RoutingPolicy[]] => {
  const { stickiness, random = Math.random, costs = createCostModel({ initialMsPerToken: 1 }) } = options
  const create = (name: PolicyName): RoutingPolicy => {
    switch (name) {
      case 'predicted-ttft':
        return createPredictedTtftPolicy({ costs, random, otherwise: create('session-affinity') })
      case 'prefix-cache':
        return createPrefixCachePolicy({ stickiness, random })
      case 'session-affinity':
        return createSessionAffinityPolicy({ stickiness, random })
      case 'least-request':
        return createLeastRequestPolicy({ random })
      case 'least-kv-cache':
        return createLeastKvCachePolicy({ random })
      case 'round-robin':
        return createRoundRobinPolicy()
      case 'random':
        return createRandomPolicy({ random })
    }
  }
  const others = policyNames.filter((name) => name !== options.defaultPolicy)
  return [create(options.defaultPolicy), ...others.map(create)]
}
