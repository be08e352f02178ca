/** What had to go so that a limit holds: a session because of their number or of memory, or the stored KV of a session that lives on. */
export type Evicted = 'session-count' | 'session-memory' | 'kv-size'

/** How much KV may be stored, over all sessions. */
export interface KvLimit {
  /** A commit that would exceed it makes room first. */
  readonly maxBytes: number
  /** Share of it, 0 to 1, that may stay filled: `evict` brings the stored KV down to it, so that commits find room. */
  readonly threshold: number
}

/** What a session's note says after its stored KV had to make room. */
export const kvEvictedNote = 'kv_evicted'

/** What a session's note says after its stored KV was dropped, since no pod could load it any more. */
export const kvStaleNote = 'kv_stale'

/** What a session's note says when its KV was not stored because turns held everything that could have made room. */
export const kvStoreFullNote = 'store_full'
