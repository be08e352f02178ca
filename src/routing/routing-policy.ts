import type { PodAddress, PodState } from './pod.ts'

/** What a policy may base its choice on. */
export interface RoutingInput {
  /** Equal for turns that should meet again: a session key or the hash of a foreign session id. */
  readonly affinityKey: string | undefined
  /** The pod that served the session last, so that its KV probably still lies there. */
  readonly lastPod: PodAddress | undefined
  /** The model that is asked for; what things cost depends on it. Left out: unknown. */
  readonly model?: string | undefined
  /** How long the prompt is, as far as can be told before the engine has seen it: the session so far, or more. Left out: unknown. */
  readonly promptTokens?: number | undefined
  /** The session's KV in the persistent store, from where any pod can load it. Left out: there is none. */
  readonly stored?: StoredPrefix | undefined
  /** Tokens of the session whose KV each pod probably still holds. A pod that is not named holds none. Left out: only `lastPod` is known. */
  readonly residentTokens?: ReadonlyMap<PodAddress, number> | undefined
}

/** A prefix whose KV lies in the persistent store. */
export interface StoredPrefix {
  readonly tokens: number
  readonly bytes: number
}

/** Chooses a pod for one turn. Policies are known by the names the field uses (`random`, `round-robin`, `least-request`, `prefix-cache`, …). */
export interface RoutingPolicy {
  readonly name: string
  /** `pods` are ready and at least one. Resolves without waiting: it is called for every turn. */
  pick(turn: RoutingInput, pods: readonly [PodState, ...PodState[]]): PodState
}
