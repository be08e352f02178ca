/** `host:port` of one engine, exactly as Envoy's cluster names it. */
export type PodAddress = string

/** One engine as the router sees it now. */
export interface PodState {
  readonly address: PodAddress
  /** Answers its health check and was not just seen failing. */
  readonly ready: boolean
  /** Turns that this gateway sent there and that have not ended yet. */
  readonly inFlight: number
  /** Requests the engine says it runs (`vllm:num_requests_running`), 0 where it does not say. */
  readonly running: number
  /** Requests the engine says are waiting (`vllm:num_requests_waiting`), 0 where it does not say. */
  readonly waiting: number
  /** Share of the engine's KV memory in use, 0 to 1 (`vllm:kv_cache_usage_perc`), 0 where it does not say. */
  readonly kvUsage: number
  /** What `inFlight` was when the engine said so: that part of `running` and `waiting` is this gateway's own. Left out: none of it. */
  readonly inFlightAtRead?: number
  /** How long the pod will still compute the prompts that this gateway sent there, milliseconds, as predicted. Left out: unknown. */
  readonly prefillBacklogMs?: number
  /** How long the pod will still load KV that this gateway asked it to load, milliseconds, as predicted. Left out: unknown. */
  readonly loadBacklogMs?: number
}

/** Where pods come from and how they are. */
export interface PodSource {
  /** All pods that are known now, ready or not, in the configured order. Cheap: no call goes out. */
  pods(): readonly PodState[]
  /** Counts a turn in or out; one that is never counted out is forgotten after the turn lease. */
  turnStarted(address: PodAddress, turnId: string): void
  turnEnded(address: PodAddress, turnId: string): void
  /** A turn saw this pod fail (connection refused, reset): it is left out until its health check answers again. */
  markUnhealthy(address: PodAddress): void
  /** Begins to watch the pods. Resolves after the first round of checks, whatever it found; never rejects. */
  start(): Promise<void>
  /** Ends every check and closes the connections to the pods. */
  stop(): Promise<void>
}
