import { leastLoaded, type PodAddress, type PodSource, type PodState, type Pods, podLoad } from './pod.ts'
import { serviceOf } from './served-models.ts'
import { loadLimit, type Stickiness } from './stickiness.ts'

/** Routing input for a turn. */
export interface RoutingInput {
  /** Equal for turns that should reach the same pod: a session key, or the hash of another party's session id. */
  readonly affinityKey: string | undefined
  /** The key is the hash of another party's session id, which stays at one pod while no KV is known. Default: false. */
  readonly isForeign?: boolean | undefined
  /** The pod that served the session last, where its KV probably still is. */
  readonly lastPod: PodAddress | undefined
  /** The model of the request. Default: unknown. */
  readonly model?: string | undefined
  /** Estimated length of the prompt, at least that of the session so far. Default: unknown. */
  readonly promptTokens?: number | undefined
  /** The session's KV in the persistent store, which any pod can load. Default: nothing is stored. */
  readonly stored?: StoredPrefix | undefined
  /** Tokens of the session whose KV each pod probably holds; others hold none. Empty or left out: see `lastPod`. */
  readonly residentTokens?: ReadonlyMap<PodAddress, number> | undefined
  /** The pods that may be chosen, as `host:port` or (all ports of it) `host`. Default: any. */
  readonly subset?: readonly string[] | undefined
}

/**
 * Tokens of the session that a pod probably holds; 0 for none. If nothing is known of the session (after a restart, or
 * when another process served it), its last pod is taken to hold what is stored, or one token where that is unknown.
 */
export const residentTokensIn = (turn: RoutingInput, address: PodAddress): number => {
  const { residentTokens } = turn
  if (residentTokens !== undefined && residentTokens.size > 0) return residentTokens.get(address) ?? 0
  return turn.lastPod === address ? Math.max(1, turn.stored?.tokens ?? 0) : 0
}

/** A prefix whose KV is in the persistent store. */
export interface StoredPrefix {
  readonly tokens: number
  readonly bytes: number
}

/** Chooses one of the pods, all of them ready, for a turn. Synchronous: it runs on every turn. */
export type PickPod = (turn: RoutingInput, pods: Pods) => PodState

/** Policies have the names that are common for them (`random`, `round-robin`, `least-request`, …). */
export interface RoutingPolicy {
  readonly name: string
  readonly pick: PickPod
}

export type RouteOutcome =
  /** `fallbacks` are at most three other ready pods, least loaded first, for Envoy's retries. */
  | {
      readonly kind: 'routed'
      readonly policy: string
      readonly pod: PodAddress
      readonly fallbacks: readonly PodAddress[]
    }
  | { readonly kind: 'no-ready-pod' }
  /** No pod serves the model of the turn. */
  | { readonly kind: 'unknown-model' }
  /** The request named a policy that does not exist. */
  | { readonly kind: 'unknown-policy'; readonly known: readonly string[] }

/** Envoy retries twice; each further address would only make the metadata of every turn longer. */
const maxFallbacks = 3

/** Picks the pod of a turn. */
export interface Router {
  /** `policyName` undefined: the default policy. `mayChoose`: whether a pod that may serve the turn may be chosen. */
  route(turn: RoutingInput, policyName: string | undefined, mayChoose?: (pod: PodAddress) => boolean): RouteOutcome
}

/** `policies[0]` is the default policy, and a request may name another one. */
export const createRouter = (options: {
  readonly source: Pick<PodSource, 'pods'>
  readonly policies: readonly [RoutingPolicy, ...RoutingPolicy[]]
  /** When a pod is overloaded, so that an adapter that runs there is no reason to choose it. */
  readonly stickiness: Stickiness
}): Router => {
  const byName = new Map(options.policies.map((policy) => [policy.name, policy]))
  return {
    route: (turn, policyName, mayChoose = () => true) => {
      const policy = policyName === undefined ? options.policies[0] : byName.get(policyName)
      if (policy === undefined) return { kind: 'unknown-policy', known: [...byName.keys()] }
      const candidates = candidatesFor(options.source.pods(), turn, options.stickiness)
      if (candidates.kind !== 'pods') return candidates
      const allowed = ({ address }: PodState): boolean => mayChoose(address)
      const preferred = candidates.preferred.filter(allowed)
      const choice = preferred.length > 0 ? preferred : candidates.pods.filter(allowed)
      if (!isNotEmpty(choice)) return { kind: 'no-ready-pod' }
      const chosen = policy.pick(turn, choice)
      const fallbacks = othersAfter(candidates.pods, chosen)
        .map((pod) => ({ address: pod.address, load: podLoad(pod) }))
        .sort((a, b) => a.load - b.load)
        .slice(0, maxFallbacks)
        .map(({ address }) => address)
      return { kind: 'routed', policy: policy.name, pod: chosen.address, fallbacks }
    },
  }
}

/** In a circle from the chosen pod on, so that the turns of a pod that fails spread over all others. */
const othersAfter = (pods: readonly PodState[], chosen: PodState): PodState[] => {
  const position = pods.indexOf(chosen)
  return [...pods.slice(position + 1), ...pods.slice(0, position)]
}

/** The pods that may serve a turn, or why there is none. */
type Candidates =
  /** The policy chooses among `preferred`; the others of `pods` are for retries. */
  | { readonly kind: 'pods'; readonly pods: Pods; readonly preferred: Pods }
  | { readonly kind: 'no-ready-pod' }
  /** No pod serves the model of the turn, ready or not. */
  | { readonly kind: 'unknown-model' }

/**
 * Ready pods that list the model of the turn; if no pod lists it, those that may answer any name, or whose models are
 * unknown. A turn without a model has all ready pods. Pods that run the turn's LoRA adapter are preferred while not
 * overloaded, except by a session that has a pod: an adapter loads in less time than a prompt is computed.
 */
const candidatesFor = (
  allPods: readonly PodState[],
  turn: Pick<RoutingInput, 'model' | 'lastPod' | 'subset'>,
  stickiness: Stickiness,
): Candidates => {
  const { model, subset } = turn
  const pods = subset === undefined ? allPods : allPods.filter(({ address }) => isIn(subset, address))
  if (model === undefined) return readyOf(pods)
  if (pods.length > 0 && serviceOf(pods, model) === 'no') return { kind: 'unknown-model' }
  const listing = pods.filter(({ models }) => models?.names.has(model))
  const served = readyOf(listing.length > 0 ? listing : pods.filter(({ models }) => models?.answersAnyName !== false))
  if (served.kind !== 'pods' || turn.lastPod !== undefined) return served
  const limit = loadLimit(stickiness, leastLoaded(served.pods)[0])
  const running = served.pods.filter((pod) => pod.activeAdapters?.has(model) && podLoad(pod) <= limit)
  return isNotEmpty(running) ? { ...served, preferred: running } : served
}

const isIn = (subset: readonly string[], address: string): boolean =>
  subset.includes(address) || subset.includes(address.slice(0, address.lastIndexOf(':')))

const readyOf = (pods: readonly PodState[]): Exclude<Candidates, { readonly kind: 'unknown-model' }> => {
  const ready = pods.filter((pod) => pod.ready)
  const known = ready.filter((pod) => pod.isNew !== true)
  const chosen = known.length > 0 ? known : ready
  return isNotEmpty(chosen) ? { kind: 'pods', pods: chosen, preferred: chosen } : { kind: 'no-ready-pod' }
}

const isNotEmpty = (pods: readonly PodState[]): pods is Pods => pods.length > 0
