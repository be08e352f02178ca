import type { PodAddress, PodState } from './pod.ts'

/** What a policy may base its choice on. */
export interface RoutingTurn {
  /** Equal for turns that should meet again: a session key or the hash of a foreign session id. */
  readonly affinityKey: string | undefined
  /** The pod that served the session last, so that its KV probably still lies there. */
  readonly residentPod: PodAddress | undefined
}

/** Chooses a pod for one turn. Policies are known by the names the field uses (`random`, `round-robin`, `least-request`, `session-affinity`). */
export interface RoutingPolicy {
  readonly name: string
  /** `pods` are ready and at least one. Resolves without waiting: it is called for every turn. */
  pick(turn: RoutingTurn, pods: readonly [PodState, ...PodState[]]): PodState
}
