import type { PodAddress, PodSource, PodState } from './pod.ts'
import { podLoad } from './pod-load.ts'
import type { RoutingInput, RoutingPolicy } from './routing-policy.ts'

export type RouteOutcome =
  /** `fallbacks` are the other ready pods, least loaded first, for Envoy's retries. */
  | {
      readonly kind: 'routed'
      readonly policy: string
      readonly pod: PodAddress
      readonly fallbacks: readonly PodAddress[]
    }
  | { readonly kind: 'no-ready-pod' }
  /** The request asked for a policy that does not exist. */
  | { readonly kind: 'unknown-policy'; readonly known: readonly string[] }

/** Picks the pod of a turn by the configured policy, or by the one that the request names. */
export interface Router {
  route(turn: RoutingInput, policyName: string | undefined): RouteOutcome
}

/** `policies[0]` is the default. */
export const createRouter = (options: {
  readonly source: Pick<PodSource, 'pods'>
  readonly policies: readonly [RoutingPolicy, ...RoutingPolicy[]]
}): Router => {
  const byName = new Map(options.policies.map((policy) => [policy.name, policy]))
  return {
    route: (turn, policyName) => {
      const policy = policyName === undefined ? options.policies[0] : byName.get(policyName)
      if (policy === undefined) return { kind: 'unknown-policy', known: [...byName.keys()] }
      const ready = options.source.pods().filter((pod) => pod.ready)
      if (!isNotEmpty(ready)) return { kind: 'no-ready-pod' }
      const chosen = policy.pick(turn, ready)
      const fallbacks = behind(ready, chosen)
        .sort((a, b) => podLoad(a) - podLoad(b))
        .map((pod) => pod.address)
      return { kind: 'routed', policy: policy.name, pod: chosen.address, fallbacks }
    },
  }
}

const isNotEmpty = (pods: readonly PodState[]): pods is readonly [PodState, ...PodState[]] => pods.length > 0

/** Equals follow the chosen pod in a circle: the turns of a pod that dies spread over the others instead of all meeting the first. */
const behind = (pods: readonly PodState[], { address }: PodState): PodState[] => {
  const position = pods.findIndex((pod) => pod.address === address)
  const others: PodState[] = []
  for (let step = 1; step < pods.length; step++) {
    const pod = pods[(position + step) % pods.length]
    if (pod !== undefined) others.push(pod)
  }
  return others
}
