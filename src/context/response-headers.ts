import type { KvPresence } from '../kvcache/kv-connector.ts'
import { kvEvictedStatus, kvStaleStatus } from '../sessions/limits.ts'

/** Response headers that name a session. */
export const sessionHeaders = (
  id: string,
  session: { readonly expiresAtMs: number; readonly ttlSeconds: number },
): Readonly<Record<string, string>> => ({
  'x-session-id': id,
  'x-session-ttl': String(session.ttlSeconds),
  'x-session-expires-at': new Date(session.expiresAtMs).toISOString(),
})

/** Reasons of `miss`: why a turn starts without its session's KV. */
export const missReasons = [
  'new_session',
  'session_not_found',
  'session_expired',
  'session_deleted',
  'session_evicted',
  'store_unavailable',
  'offload_pending',
  kvEvictedStatus,
  kvStaleStatus,
  'kv_missing',
  'kv_incompatible',
  'load_too_slow',
  'engine_reuses_nothing',
  'load_timeout',
  'load_failed',
  'kv_store_unavailable',
  'no_slot',
  'kv_folder_foreign',
] as const

export type MissReason = (typeof missReasons)[number]

/** `x-context-cache` of a turn that cannot use its session's KV. */
export const missStatus = (reason: MissReason): string => `miss; reason=${reason}`

/** `x-context-cache` of a turn whose session keeps no KV. */
export const noneStatus = (reason: string): string => `none; reason=${reason}`

/** What `x-context-cache` says that a turn found. */
export const resultIn = (cacheStatus: string | undefined): 'hit' | 'miss' | 'none' | undefined => {
  const [result] = cacheStatus?.split(';') ?? []
  return result === 'hit' || result === 'miss' || result === 'none' ? result : undefined
}

/** What `x-context-cache` says of a hit. */
export interface CacheHitStatus {
  readonly tier: 'gpu' | 'cpu' | 'store'
  readonly tokens: number
  readonly loadMs?: number | undefined
}

/** Undefined: it was no hit. */
export const hitIn = (cacheStatus: string | undefined): CacheHitStatus | undefined => {
  const [, tier, tokens, load] =
    /^hit; tier=(gpu|cpu|store); tokens=(\d+)(?:; load=(\d+)ms)?/.exec(cacheStatus ?? '') ?? []
  if (tier !== 'gpu' && tier !== 'cpu' && tier !== 'store') return undefined
  return { tier, tokens: Number(tokens), loadMs: load === undefined ? undefined : Number(load) }
}

/** `x-context-cache` by what the turn's pod holds. `kvStatus`: why the session has no stored KV; undefined: unknown. */
export const presenceStatus = (presence: KvPresence, kvStatus: string | undefined): string => {
  if (presence.kind === 'hit') {
    const { tier, tokens, loadMs } = presence
    const load = tier !== 'store' ? '' : `; load=${loadMs === undefined ? 'on-demand' : `${Math.round(loadMs)}ms`}`
    return `hit; tier=${tier}; tokens=${tokens}${load}`
  }
  switch (presence.reason) {
    case 'nothing_stored':
      return emptyStatus(kvStatus)
    case 'engine_cache':
    case 'no_connector':
    case 'fields_ignored':
      return noneStatus(presence.reason)
    default:
      return missStatus(presence.reason)
  }
}

/** A session that lost its KV misses it until other KV is stored; a session that could not store any has none. */
const emptyStatus = (kvStatus: string | undefined): string => {
  switch (kvStatus) {
    case undefined:
      return missStatus('offload_pending')
    case kvEvictedStatus:
    case kvStaleStatus:
    case 'kv_missing':
      return missStatus(kvStatus)
    default:
      return noneStatus(kvStatus)
  }
}
