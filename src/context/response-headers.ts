import type { KvPresence } from '../kvcache/kv-connector.ts'
import { kvEvictedStatus, kvStaleStatus } from '../sessions/limits.ts'

/** Response headers of a session's turn. `cacheStatus` is the value of `x-context-cache`. */
export const sessionHeaders = (
  id: string,
  session: { readonly expiresAtMs: number; readonly ttlSeconds: number },
  cacheStatus: string,
): Readonly<Record<string, string>> => ({
  'x-session-id': id,
  'x-session-ttl': String(session.ttlSeconds),
  'x-session-expires-at': new Date(session.expiresAtMs).toISOString(),
  'x-context-cache': cacheStatus,
})

/** Why a turn starts without its session's KV. */
export type MissReason =
  | 'new_session'
  | 'session_not_found'
  | 'session_expired'
  | 'session_deleted'
  | 'session_evicted'
  | 'store_unavailable'
  | 'offload_pending'
  | 'kv_missing'
  | 'kv_incompatible'
  | 'kv_evicted'
  | 'kv_stale'
  | 'load_timeout'
  | 'load_too_slow'
  | 'load_failed'
  | 'kv_store_unavailable'
  | 'no_slot'

/** `x-context-cache` of a turn that cannot use its session's KV. */
export const missStatus = (reason: MissReason): string => `miss; reason=${reason}`

/** `x-context-cache` of a turn whose session keeps no KV. */
export const noneStatus = (reason: string): string => `none; reason=${reason}`

/** `x-context-cache` of a turn by what its pod holds. `kvStatus` is why the session has no stored KV, undefined if unknown. */
export const presenceStatus = (presence: KvPresence, kvStatus: string | undefined): string => {
  switch (presence.kind) {
    case 'resident':
      return `hit; tier=${presence.tier ?? 'gpu'}; tokens=${presence.tokens}`
    case 'loaded':
      return `hit; tier=store; tokens=${presence.tokens}; load=${Math.round(presence.loadMs)}ms`
    case 'on-demand':
      return `hit; tier=store; tokens=${presence.tokens}; load=on-demand`
    case 'empty':
      return emptyStatus(kvStatus)
    case 'missing':
      return missStatus('kv_missing')
    case 'incompatible':
      return missStatus('kv_incompatible')
    case 'not-worthwhile':
      return missStatus('load_too_slow')
    case 'timed-out':
      return missStatus('load_timeout')
    case 'failed':
      return missStatus('load_failed')
    case 'unavailable':
      return missStatus('kv_store_unavailable')
    case 'no-room':
      return missStatus('no_slot')
  }
}

/** A session that lost its KV misses it once; a session that could not store any has none. */
const emptyStatus = (kvStatus: string | undefined): string => {
  switch (kvStatus) {
    case undefined:
      return missStatus('offload_pending')
    case kvEvictedStatus:
    case kvStaleStatus:
      return missStatus(kvStatus)
    default:
      return noneStatus(kvStatus)
  }
}
