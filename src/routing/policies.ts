import { createLeastRequestPolicy } from './least-request-policy.ts'
import type { RandomSource } from './random-choice.ts'
import { createRandomPolicy } from './random-policy.ts'
import { createRoundRobinPolicy } from './round-robin-policy.ts'
import type { RoutingPolicy } from './routing-policy.ts'
import { createSessionAffinityPolicy, type Stickiness } from './session-affinity-policy.ts'

/** Every policy by its name, as the configuration and the `routing-strategy` header spell it. */
export const policyNames = ['session-affinity', 'least-request', 'round-robin', 'random'] as const

export type PolicyName = (typeof policyNames)[number]

/** All policies, `defaultPolicy` first, as {@link createRouter} wants them. `random` is `Math.random` by default. */
export const createPolicies = (options: {
  readonly defaultPolicy: PolicyName
  readonly stickiness: Stickiness
  readonly random?: RandomSource
}): readonly [RoutingPolicy, ...RoutingPolicy[]] => {
  const random = options.random ?? Math.random
  const others = policyNames.filter((name) => name !== options.defaultPolicy)
  const create = (name: PolicyName): RoutingPolicy => {
    switch (name) {
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
