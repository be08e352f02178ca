import type { CostEstimate } from './cost-profile/cost-estimate.ts'
import { createCostProfile } from './cost-profile/cost-profile.ts'
import { createLeastKvCachePolicy } from './least-kv-cache-policy.ts'
import { createLeastRequestPolicy } from './least-request-policy.ts'
import { createPredictedTtftPolicy } from './predicted-ttft-policy.ts'
import { createPrefixCachePolicy } from './prefix-cache-policy.ts'
import type { RandomSource } from './random-choice.ts'
import { createRandomPolicy } from './random-policy.ts'
import { createRoundRobinPolicy } from './round-robin-policy.ts'
import type { RoutingPolicy } from './routing-policy.ts'
import { createSessionAffinityPolicy, type Stickiness } from './session-affinity-policy.ts'

/** Every policy by its name, as the configuration and the `routing-strategy` header spell it. */
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
 * All policies, `defaultPolicy` first, as {@link createRouter} wants them. `random` is `Math.random` by default, `costs` a
 * profile that learns nothing.
 */
export const createPolicies = (options: {
  readonly defaultPolicy: PolicyName
  readonly stickiness: Stickiness
  readonly random?: RandomSource
  readonly costs?: CostEstimate
}): readonly [RoutingPolicy, ...RoutingPolicy[]] => {
  const random = options.random ?? Math.random
  const costs = options.costs ?? createCostProfile({ initialMsPerToken: 1 })
  const others = policyNames.filter((name) => name !== options.defaultPolicy)
  const create = (name: PolicyName): RoutingPolicy => {
    switch (name) {
      case 'predicted-ttft':
        return createPredictedTtftPolicy({ costs, random, otherwise: create('session-affinity') })
      case 'prefix-cache':
        return createPrefixCachePolicy({ stickiness: options.stickiness, random })
      case 'least-kv-cache':
        return createLeastKvCachePolicy({ random })
      case 'session-affinity':
        return createSessionAffinityPolicy({ stickiness: options.stickiness, random })
      case 'least-request':
        return createLeastRequestPolicy({ random })
      case 'round-robin':
        return createRoundRobinPolicy()
      case 'random':
        return createRandomPolicy({ random })
    }
  }
  return [create(options.defaultPolicy), ...others.map(create)]
}
