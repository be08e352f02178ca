/**
 * What engines tell of their own prefix caches (vLLM's KV events): which blocks of tokens they hold now, and what tokens a turn left there.
 * Everything is kept in memory and bounded; nothing is ever guessed: where events were missed and could not be had again, what was known of
 * the pod is forgotten, and only what it tells from then on counts.
 */
export interface KvEvents {
  /**
   * How many leading tokens of the sequence lie in the pod's own cache, in whole blocks; in every data parallel rank of it, because nobody
   * knows which of them a turn will meet. Undefined: the pod sends no events, or some were missed and have not come yet.
   */
  residentTokens(pod: string, prefix: KvPrefix): number | undefined
  /**
   * The tokens of the longest prefix that the engine stored or reused for the turn, in whole blocks, as soon as there are at least `minTokens`
   * of them, or what there is when the signal fires. Undefined: nothing was told of the turn. vLLM tells of reused blocks only in so far as a
   * new block follows them: a turn that filled no block is not told of, unless the request asks for it (`kv_cache_report_mode: full` in its
   * `vllm_xargs`). Blocks that it took from a store or filled while it answered are told of, some only after the answer's end.
   */
  turnTokens(
    pod: string,
    turn: { readonly turnId: string; readonly minTokens: number },
    signal: AbortSignal,
  ): Promise<Uint32Array | undefined>
  /** Whether the pod's events are complete at this moment. */
  isLive(pod: string): boolean
  /** Lets every connection go. Whoever waits gets what there is. */
  stop(): Promise<void>
}

/** A sequence of tokens as an engine tells it apart from others. */
export interface KvPrefix {
  /** The request's `cache_salt`; empty where it has none. */
  readonly salt: string
  readonly tokens: Uint32Array
  /** The LoRA adapter's name. Default: the base model. */
  readonly lora?: string | undefined
}
