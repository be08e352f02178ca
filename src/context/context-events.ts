import type { KvPresence, OffloadOutcome } from '../kvcache/kv-connector.ts'
import type { SessionKey } from '../sessions/session-record.ts'
import type { TurnUsage } from './context-cache-manager.ts'

/** How a session lookup for a turn came out. */
export type LookupResult = 'active' | 'expired' | 'deleted' | 'unknown' | 'store_unavailable'

/** What a request asked for. */
export type RequestRoute =
  | 'create'
  | 'completions'
  | 'chat_completions'
  | 'responses'
  | 'get'
  | 'list'
  | 'update'
  | 'delete'
  | 'other'

/** What became of a request: sent to an engine for a session, answered here, left alone, refused, failed by a fault of ours, or left by its client. */
export type RequestOutcome = 'forwarded' | 'answered' | 'passed' | 'rejected' | 'failed' | 'abandoned'

/** How a turn ended. `gone`: well, but its session was deleted meanwhile. */
export type TurnOutcome = 'completed' | 'gone' | 'engine_error' | 'upstream_failed' | 'client_left' | 'incomplete'

/** What happens in the context room, for metrics and the log. Nothing here holds a prompt, a credential or a raw id. */
export interface ContextEvents {
  requestDecided(route: RequestRoute, outcome: RequestOutcome): void
  routed(policy: string, pod: string): void
  sessionCreated(key: SessionKey): void
  sessionDeleted(key: SessionKey): void
  /** Sessions whose time was over have been ended. */
  sessionsExpired(count: number): void
  lookedUp(result: LookupResult): void
  /** The pod was made ready for a turn, in so many milliseconds. */
  attached(presence: KvPresence, milliseconds: number): void
  turnEnded(outcome: TurnOutcome, usage: TurnUsage | undefined): void
  offloaded(outcome: OffloadOutcome, milliseconds: number): void
  /** Sessions lost stored KV that no pod can load any more. */
  kvUseless(count: number): void
  /** KV was removed from the store and the pods. */
  removed(kind: 'artefact' | 'session'): void
  /** A removal has to wait. */
  removalPostponed(reason: string, attempt: number): void
  /** The session store failed; the request went on without it or was told so. */
  storeFault(operation: string, error: unknown): void
  /** A fault that no client was told the cause of. */
  fault(where: string, error: unknown): void
}
