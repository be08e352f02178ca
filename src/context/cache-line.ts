import type { KvPresence } from '../kvcache/kv-connector.ts'
import { kvEvictedNote, kvStaleNote } from '../sessions/limits.ts'

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
  | 'kv_evicted'
  | 'kv_stale'
  | 'load_timeout'
  | 'load_too_slow'
  | 'load_failed'
  | 'kv_store_unavailable'
  | 'no_slot'

/** `x-context-cache` for a turn that cannot use its session's KV. */
export const missLine = (reason: MissReason): string => `miss; reason=${reason}`

/** `x-context-cache` for a turn whose session keeps no KV at all. */
export const noneLine = (reason: string): string => `none; reason=${reason}`

/** `x-context-cache` for what a connector found in the pod or brought there. `kvNote` is why the session has nothing stored, if that is known. */
export const presenceLine = (presence: KvPresence, kvNote: string | undefined): string => {
  switch (presence.kind) {
    case 'resident':
      return `hit; tier=${presence.tier ?? 'gpu'}; tokens=${presence.tokens}`
    case 'loaded':
      return `hit; tier=store; tokens=${presence.tokens}; load=${Math.round(presence.loadMs)}ms`
    case 'on-demand':
      return `hit; tier=store; tokens=${presence.tokens}; load=on-demand`
    case 'empty':
      return emptyLine(kvNote)
    case 'missing':
      return missLine('kv_missing')
    case 'not-worthwhile':
      return missLine('load_too_slow')
    case 'timed-out':
      return missLine('load_timeout')
    case 'failed':
      return missLine('load_failed')
    case 'unavailable':
      return missLine('kv_store_unavailable')
    case 'no-room':
      return missLine('no_slot')
  }
}

/** A session that had KV and lost it misses it once; one that could not store any has none. */
const emptyLine = (kvNote: string | undefined): string => {
  switch (kvNote) {
    case undefined:
      return missLine('offload_pending')
    case kvEvictedNote:
    case kvStaleNote:
      return missLine(kvNote)
    default:
      return noneLine(kvNote)
  }
}
