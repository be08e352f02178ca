/**
 * What vLLM pods report of the KV blocks in their own caches. Memory is bounded. A report that was missed leaves a turn unknown; the session's
 * next turn reports all of its blocks again.
 */
export interface KvEvents {
  /** Asks the pod where it publishes. Resolves when its events are received, or when it publishes none. @throws when that fails, or the signal fires */
  follow(pod: string, signal: AbortSignal): Promise<void>
  /**
   * Tokens of the KV blocks that a turn filled or reused, from its first token on, in whole blocks. Resolves when at least `minTokens` of them
   * (and at least one) are reported; else, when the signal fires, to those that are. Undefined: none, or the pod publishes no events.
   */
  turnTokens(
    pod: string,
    turn: { readonly turnId: string; readonly minTokens: number },
    signal: AbortSignal,
  ): Promise<Uint32Array | undefined>
  /**
   * How many of these tokens lie in the pod's own cache now, without a gap from the first one on; in each data parallel rank of it, since the
   * next turn may meet any. 0 where it is unknown.
   */
  residentTokens(pod: string, turnId: string): number
  /** Whether the pod's events are received at this moment. */
  isLive(pod: string): boolean
  /** Closes all connections; pending waits resolve with what is known. */
  stop(): Promise<void>
}

/**
 * Body member that makes vLLM (0.32 or later) report a turn's whole chain of blocks under its `session_id`, also blocks that were cached before.
 * Replaces a client's own `vllm_xargs`.
 */
export const reportWholeTurn = { vllm_xargs: { kv_cache_report_mode: 'full' } } as const

/** For fleets whose engines publish no events: every answer is unknown, at once. */
export const createNoKvEvents = (): KvEvents => ({
  follow: async () => {},
  turnTokens: async () => undefined,
  residentTokens: () => 0,
  isLive: () => false,
  stop: async () => {},
})
