import { type CostEstimate, createCostModel } from './cost-model.ts'
import { leastLoaded, lowest, type Pods, podLoad, type RandomSource, randomPod } from './pod.ts'
import { createPredictedTtftPolicy } from './predicted-ttft.ts'
import { type PickPod, type RoutingPolicy, residentTokensIn } from './router.ts'
import { createSessionAffinityPolicy } from './session-affinity.ts'
import { loadLimit, type Stickiness } from './stickiness.ts'

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

/** All policies, `defaultPolicy` first. Defaults: `random` is `Math.random`, `costs` a model that does not learn. */
export const createPolicies = (options: {
  readonly defaultPolicy: PolicyName
  readonly stickiness: Stickiness
  readonly random?: RandomSource
  readonly costs?: CostEstimate
}): readonly [RoutingPolicy, ...RoutingPolicy[]] => {
  const { stickiness, random = Math.random, costs = createCostModel({ initialMsPerToken: 1 }) } = options
  const sessionAffinity = createSessionAffinityPolicy({ stickiness, random })
  const picks: Record<PolicyName, PickPod> = {
    'predicted-ttft': createPredictedTtftPolicy({ costs, random, otherwise: sessionAffinity }),
    'prefix-cache': createPrefixCachePolicy({ stickiness, random }),
    'session-affinity': sessionAffinity,
    // Random among equals, so that several gateways do not move in step.
    'least-request': (_turn, pods) => randomPod(leastLoaded(pods), random),
    'least-kv-cache': (_turn, pods) => randomPod(leastLoaded(leastKvUsed(pods)), random),
    'round-robin': createRoundRobin(),
    random: (_turn, pods) => randomPod(pods, random),
  }
  const policyOf = (name: PolicyName): RoutingPolicy => ({ name, pick: picks[name] })
  const others = policyNames.filter((name) => name !== options.defaultPolicy)
  return [policyOf(options.defaultPolicy), ...others.map(policyOf)]
}

/** `prefix-cache`: of pods not overloaded, the one with most of the session; then the least loaded, then random. */
const createPrefixCachePolicy =
  (options: { readonly stickiness: Stickiness; readonly random: RandomSource }): PickPod =>
  (turn, pods) => {
    const limit = loadLimit(options.stickiness, leastLoaded(pods)[0])
    // The tokens of an overloaded pod do not count.
    const best = lowest(pods, (pod) => (podLoad(pod) > limit ? 0 : -residentTokensIn(turn, pod.address)))
    return randomPod(leastLoaded(best), options.random)
  }

const createRoundRobin = (): PickPod => {
  let next = 0
  return (_turn, pods) => {
    const index = next % pods.length
    next = index + 1
    return pods[index] ?? pods[0]
  }
}

/**
 * The pods with the least KV memory in use: by the engine's last report, plus the pods' average per request for
 * requests not in it (waiting, or sent since). Without these, all turns between two reports reach the same pod.
 */
const leastKvUsed = (pods: Pods): Pods => {
  const usage = pods.reduce((sum, pod) => sum + pod.kvUsage, 0)
  const running = pods.reduce((sum, pod) => sum + pod.running, 0)
  const perRequest = usage / Math.max(1, running)
  return lowest(pods, (pod) => Math.max(0, pod.kvUsage + (podLoad(pod) - pod.running) * perRequest))
}
