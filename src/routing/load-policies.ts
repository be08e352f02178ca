import { leastLoaded, lowest, type Pods, podLoad } from './pod.ts'
import type { RoutingPolicy } from './router.ts'

/** A number from 0 up to, but not including, 1. */
export type RandomSource = () => number

/** One of the items, each with the same probability. */
export const randomChoice = <T>(items: readonly [T, ...T[]], random: RandomSource): T =>
  items[Math.floor(random() * items.length)] ?? items[0]

/** `random`: any pod. */
export const createRandomPolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'random',
  pick: (_turn, pods) => randomChoice(pods, options.random),
})

/** `round-robin`: one pod after the other. */
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

/** `least-request`: the pod with the fewest requests; random among equals, so that several gateways do not move in step. */
export const createLeastRequestPolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'least-request',
  pick: (_turn, pods) => randomChoice(leastLoaded(pods), options.random),
})

/**
 * `least-kv-cache`: the pod whose KV memory is used least, by the engine's last report and the requests that are not in it: those that wait,
 * and turns since. Without them, all turns between two reports reach the same pod. Of equals the least loaded, then random.
 */
export const createLeastKvCachePolicy = (options: { readonly random: RandomSource }): RoutingPolicy => ({
  name: 'least-kv-cache',
  pick: (_turn, pods) => {
    const perRequest = usagePerRequest(pods)
    const used = lowest(pods, (pod) => Math.max(0, pod.kvUsage + (podLoad(pod) - pod.running) * perRequest))
    return randomChoice(leastLoaded(used), options.random)
  },
})

/** The share of a pod's KV memory that one request takes, on average over the pods. */
const usagePerRequest = (pods: Pods): number => {
  const usage = pods.reduce((sum, pod) => sum + pod.kvUsage, 0)
  const running = pods.reduce((sum, pod) => sum + pod.running, 0)
  return usage / Math.max(1, running)
}
