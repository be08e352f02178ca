import type { KvPresence } from '../kvcache/kv-connector.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { BeginNamedOutcome, TurnExpiry } from '../sessions/session-store.ts'
import type { Decision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import type { ActiveTurns } from './end-turn.ts'
import { traceOf } from './request-trace.ts'
import { type CacheHit, cachedResponse } from './response-cache-handler.ts'
import { missStatus, noneStatus, presenceStatus, sessionHeaders } from './response-headers.ts'
import { routeTurn, type TurnToRoute } from './route-turn.ts'
import type { TurnParts } from './session-turn.ts'
import { startSessionTurn, withStatus } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** A session that has the turn's lease. */
export type BegunSession = Extract<BeginNamedOutcome, { readonly kind: 'created' | 'active' | 'expired' }>

/** A turn that is begun in the session store. */
export interface BegunTurn {
  readonly request: GatewayRequest
  /** By which the client gets at the session. */
  readonly id: string
  /** The session's, or that of its branch. */
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly turnId: string
  /** From the request's own header. */
  readonly ttlSeconds: number | undefined
  /** What a turn does to the deadline of the session, where it brings no TTL of its own. */
  readonly expiry: Extract<TurnExpiry, { readonly kind: 'keep' | 'slide' }>
  /** Kind of the client's name that chose the session. Undefined: its id did. */
  readonly namedBy: string | undefined
  /** Of a session that has no KV yet. Default: none is preferred. */
  readonly preferredPod?: string | undefined
  readonly cached: CacheHit | undefined
  readonly scope: RequestScope
}

/** Routes a begun turn, brings the session's KV into the pod, and decides. What it returns throws GatewayError. */
export const createContinueSession = (
  parts: TurnParts & { readonly turns: Pick<ActiveTurns, 'completeCached'> },
): ((turn: BegunTurn, begun: BegunSession) => Promise<Decision<TurnTicket>>) => {
  const sendCached = async (
    { request, key, tenant, turnId, namedBy }: BegunTurn,
    cached: CacheHit,
    use: { readonly pod: string; readonly expiry: TurnExpiry; readonly headers: Readonly<Record<string, string>> },
  ): Promise<Decision<TurnTicket>> => {
    const { pod, expiry, headers } = use
    const { model } = cached
    const cacheStatus = noneStatus('response_cached')
    const pool = parts.pools.forModel(model).name
    const session = { key, tenant, model, expiry }
    const ticket = { turnId, pool, pod, cacheStatus, namedBy, ...traceOf(request), session }
    await parts.turns.completeCached(ticket, cached.response.usage)
    return cachedResponse(cached, { ...headers, 'x-context-cache': cacheStatus })
  }

  return async (turn, begun) => {
    const { request, id, key, turnId, tenant, cached, namedBy } = turn
    const record = begun.kind === 'expired' ? undefined : begun.record
    const { model, ttlSeconds: lastTtlSeconds } = begun.kind === 'expired' ? begun : begun.record
    const ttlSeconds = turn.ttlSeconds ?? lastTtlSeconds
    const restartedMs = begun.nowMs + ttlSeconds * 1000
    const expiry: TurnExpiry =
      turn.ttlSeconds === undefined ? turn.expiry : { kind: 'set', ttlSeconds, expiresAtMs: restartedMs }
    const expiresAtMs = (expiry.kind === 'keep' ? record?.expiresAtMs : undefined) ?? restartedMs
    const headers = sessionHeaders(id, { expiresAtMs, ttlSeconds })
    if (cached?.model === model && record?.pod !== undefined)
      return sendCached(turn, cached, { pod: record.pod, expiry, headers })
    if (record === undefined) parts.pools.forget(key)
    const session = record ?? { key, model }
    const route = routeTurn(parts, request, { ...session, ...preferenceOf(turn) })
    const routed = { turnId, route, tenant, session, expiry, restarted: record === undefined }
    const { presence, forward } = await startSessionTurn(parts, routed, turn.scope)
    if (begun.kind === 'created') parts.events.sessionCreated(key)
    // The model of a named session is that of the body.
    const expectModel = namedBy === undefined ? model : undefined
    return withStatus({ ...forward, expectModel }, { cacheStatus: statusOf(begun, presence), namedBy }, headers)
  }
}

/** Of pods that are alike, the preferred one is chosen as if it had computed one token of the prompt. */
const preferenceOf = ({ preferredPod }: BegunTurn): Pick<TurnToRoute, 'prompt'> =>
  preferredPod === undefined ? {} : { prompt: { bytes: 0, residentTokens: new Map([[preferredPod, 1]]) } }

const statusOf = (begun: BegunSession, presence: KvPresence): string => {
  switch (begun.kind) {
    case 'active':
      return presenceStatus(presence, begun.record.kvStatus)
    case 'created':
      // A fork has KV from the start.
      return begun.record.kv === undefined ? missStatus('new_session') : presenceStatus(presence, begun.record.kvStatus)
    case 'expired':
      return missStatus(begun.cause === 'eviction' ? 'session_evicted' : 'session_expired')
  }
}
