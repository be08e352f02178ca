import type { FinishOutcome, KvPresence } from '../kvcache/kv-connector.ts'
import type { TokenUsage } from '../openai/usage.ts'
import type { TenantName } from '../sessions/session-directory.ts'
import type { SessionKey } from '../sessions/session-record.ts'
import { StoreUnavailableError } from '../sessions/session-store.ts'
import type { TurnTicket } from './turn-ticket.ts'

/**
 * Result of a session lookup for a turn. `created`: by the first turn of a name. `limited`: its tenant has as much as it
 * may. `store_unavailable`: also of a create that goes on without a session.
 */
export type LookupResult = 'active' | 'created' | 'expired' | 'deleted' | 'unknown' | 'limited' | 'store_unavailable'

/** Kind of a request. */
export type RequestRoute =
  | 'create'
  | 'completions'
  | 'chat_completions'
  | 'responses'
  | 'messages'
  | 'get'
  | 'list'
  | 'fork'
  | 'update'
  | 'delete'
  | 'history'
  | 'other'

/**
 * Result of a request: forwarded to an engine for a session, answered by the gateway, passed through unchanged,
 * rejected, failed by a fault of the gateway, or abandoned by its client.
 */
export type RequestOutcome = 'forwarded' | 'answered' | 'passed' | 'rejected' | 'failed' | 'abandoned'

/** Result of a turn. `gone`: it completed, but its session had been deleted. */
export type TurnOutcome = 'completed' | 'gone' | 'engine_error' | 'upstream_failed' | 'client_left' | 'incomplete'

/** What is known of a turn that has ended, beside its outcome. */
export interface EndedTurnFacts
  extends Pick<TurnTicket, 'pool' | 'namedBy' | 'cacheStatus' | 'preparedMs' | 'waitedMs' | 'traceId' | 'requestId'> {
  /** The pod that served, else the chosen one. */
  readonly pod: string
  /** Undefined: the turn had no session. */
  readonly session: SessionKey | undefined
  /** Undefined: no engine lists it, or it is not known. */
  readonly model: string | undefined
  /** HTTP status; 0 when no response was sent. */
  readonly status: number
  /** From the request's last byte to the first byte of the response body, milliseconds. */
  readonly ttfbMs?: number | undefined
  readonly isStream?: boolean | undefined
  /** `stored`, `unchanged`, or why nothing was stored. Default: nothing was to be stored. */
  readonly offload?: string | undefined
  readonly offloadMs?: number | undefined
  /** Time to compute the prompt's tokens that were reused, and those that were not, by learnt costs. Of session turns. */
  readonly prefill?: { readonly savedMs: number; readonly computedMs: number } | undefined
}

/** Engines whose hits are judged together. */
export interface JudgedEngines {
  /** Name of the pool. */
  readonly pool: string
  /** Undefined: no engine lists it, as where one answers any name. All of these are judged together. */
  readonly model: string | undefined
  /** An engine may reuse what it kept by itself, and nothing of what is loaded into it. */
  readonly source: 'kept' | 'loaded'
}

/** Events of the context module, for metrics and the log. None holds a prompt, a credential or a raw session id. */
export interface ContextEvents {
  requestDecided(route: RequestRoute, outcome: RequestOutcome): void
  routed(policy: string, pod: string): void
  sessionCreated(key: SessionKey): void
  sessionDeleted(key: SessionKey): void
  /** An operator had all of a tenant deleted; `complete`: nothing was left. */
  tenantErased(
    tenant: TenantName,
    erased: { readonly sessions: number; readonly cachedAnswers: number; readonly complete: boolean },
  ): void
  /** Sessions were ended because their time to live was over. */
  sessionsExpired(count: number): void
  /** `namedBy`: kind of the client's name that the session was looked up by. Undefined: by its id. */
  lookedUp(result: LookupResult, namedBy: string | undefined): void
  /** A pod of the pool was prepared for a turn, within `milliseconds`. */
  prepared(presence: KvPresence, milliseconds: number, pool: string): void
  /** A turn waits for its KV to be brought into the pod. */
  loadBegan(pod: string): void
  /** Called once after each `loadBegan`, however it ended. */
  loadEnded(pod: string): void
  /** Called once for each turn, last. */
  turnEnded(outcome: TurnOutcome, usage: TokenUsage | undefined, turn: EndedTurnFacts): void
  /** The end of a turn was reported with a ticket that no gateway of this deployment made. It is ignored. */
  ticketRefused(): void
  /** A turn's engine reused almost nothing of a hit, although the prompt was no shorter. */
  hitNotReused(engines: JudgedEngines): void
  /** From now on hits are called misses, or no longer. `pod`: that of the turn that showed it. */
  reuseChanged(engines: JudgedEngines & { readonly pod: string }, isReused: boolean): void
  offloaded(outcome: FinishOutcome, milliseconds: number, pool: string): void
  /** Stored KV of sessions was dropped because no pod can load it. */
  kvUseless(count: number): void
  /** KV was removed from the store and the pods. */
  removed(kind: 'artefact' | 'session', session: SessionKey): void
  /** A removal is tried again later. */
  removalPostponed(reason: string, attempt: number): void
  /** KV of another connector was not removed; it is tried again much later. */
  removalForeign(attempt: number): void
  /** The session store failed; the request went on without it, or was rejected. */
  storeFault(operation: string, error: unknown): void
  /** An unexpected fault, whose cause no client sees. */
  fault(where: string, error: unknown): void
}

/** Reports what was thrown: an unavailable store as a store fault, anything else as a fault. */
export const reportFault = (events: ContextEvents, where: string, error: unknown): void => {
  if (error instanceof StoreUnavailableError) events.storeFault(where, error)
  else events.fault(where, error)
}

/** What a lookup of the session store found, reported. `store_unavailable`: nothing, for the store failed. */
export const lookUp = async <Found extends { readonly kind: LookupResult }>(
  events: ContextEvents,
  begin: Promise<Found>,
  namedBy: string | undefined,
): Promise<Found | { readonly kind: 'store_unavailable' }> => {
  const found = await begin.catch((error: unknown) => {
    reportFault(events, 'begin', error)
    return { kind: 'store_unavailable' } as const
  })
  events.lookedUp(found.kind, namedBy)
  return found
}
