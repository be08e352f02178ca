/** What was evicted to keep a limit: a session (by count or by memory), or the stored KV of a session that lives on. */
export type Evicted = 'session-count' | 'session-memory' | 'kv-size'

/** How much KV may be stored, over all sessions. */
export interface KvLimit {
  /** A commit that would exceed it evicts the KV of other sessions first. */
  readonly maxBytes: number
  /** Share of it, 0 to 1, that may stay filled: `evict` brings the stored KV down to it, so that commits find room. */
  readonly threshold: number
}

/** What one tenant may have at a time. Undefined: as much as the store takes. */
export interface TenantLimits {
  /** Live sessions. Those that have expired may count until the next sweep. */
  readonly maxSessions?: number | undefined
  /** Bytes of stored KV. */
  readonly maxStoredBytes?: number | undefined
  /** Turns of sessions, from their begin to their end or, where none is reported, to the end of their lease. */
  readonly maxTurns?: number | undefined
}

/** What every session store takes; the same for all gateways that share one. */
export interface SessionStoreOptions {
  /** How long a tombstone is kept. Default 86400. */
  readonly tombstoneSeconds?: number
  /** How long a replaced artefact is kept for loads that are still reading it. Default 5000. */
  readonly supersededGraceMs?: number
  /** Default: no limit. */
  readonly kvLimit?: KvLimit | undefined
  /** Read at each use. Default: no limits. */
  readonly tenantLimits?: (() => TenantLimits) | undefined
  /** Called for every eviction. */
  readonly onEvicted?: (what: Evicted, count: number) => void
}

/** Which of its limits a tenant has reached. */
export type TenantLimit = 'sessions' | 'stored-bytes' | 'turns'

/** `kvStatus` of a session whose KV was not stored because its tenant stores as much as it may. */
export const kvTenantFullStatus = 'tenant_full'

/** `kvStatus` of a session whose stored KV was evicted. */
export const kvEvictedStatus = 'kv_evicted'

/** `kvStatus` of a session whose stored KV was dropped because no pod could load it any more. */
export const kvStaleStatus = 'kv_stale'

/** `kvStatus` of a session whose KV was not stored because sessions in turns held all the room. */
export const kvStoreFullStatus = 'store_full'

/**
 * Leases a session keeps at most. That of a turn whose end is never reported stays until it runs out; such leases must
 * not slow turns. Beyond the limit the one that ends first goes: the others hold the session, its turn is not counted.
 */
export const maxLeases = 64

/** The largest count a store keeps: exact in JavaScript, Lua and Redis, with room for the milliseconds of any date. */
const largestCount = 999_999_999_999_999

/** A whole number from 0 to {@link largestCount}; 0 for NaN and infinities. No engine's count may spoil a record. */
export const clampCount = (value: number): number =>
  Number.isFinite(value) ? Math.min(Math.max(Math.trunc(value), 0), largestCount) : 0

/** Sessions that have the same stored KV at most: what one of them does with it looks at all. */
export const maxHolders = 64

/** Prompts of one name whose KV is kept at the same time. */
export const maxBranches = 4
