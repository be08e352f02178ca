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
  const sessionAffinity = createSessionAffinityPolicy({ stickiness, random })
  const policies: Record<PolicyName, RoutingPolicy> = {
    'predicted-ttft': createPredictedTtftPolicy({ costs, random, otherwise: sessionAffinity }),
    'prefix-cache': createPrefixCachePolicy({ stickiness, random }),
    'session-affinity': sessionAffinity,
    'least-request': createLeastRequestPolicy({ random }),
    'least-kv-cache': createLeastKvCachePolicy({ random }),
    'round-robin': createRoundRobinPolicy(),
    random: createRandomPolicy({ random }),
  }
  const others = policyNames.filter((name) => name !== options.defaultPolicy)
  return [policies[options.defaultPolicy], ...others.map((name) => policies[name])]
}
