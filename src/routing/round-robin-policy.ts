import type { RoutingPolicy } from './routing-policy.ts'

/** `round-robin`: one pod after the other, in the configured order. */
export const createRoundRobinPolicy = (): RoutingPolicy => {
  let next = 0
  return {
    name: 'round-robin',
    pick: (_turn, pods) => {
      const index = next % pods.length
      next = index + 1
      return pods[index] ?? pods[0]
    },
  }
}
