import { hash } from 'node:crypto'
import { GatewayError } from '../openai/gateway-error.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { BeginOutcome, TurnExpiry } from '../sessions/session-store.ts'
import type { Decision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import type { ActiveTurns } from './end-turn.ts'
import { checkSpliceable, namedModel, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import { traceOf } from './request-trace.ts'
import { type CacheHit, cachedResponse } from './response-cache-handler.ts'
import { type MissReason, missStatus, noneStatus, presenceStatus, sessionHeaders } from './response-headers.ts'
import { routeTurn } from './route-turn.ts'
import { sessionKeyOf } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import type { Tenants } from './tenant.ts'
import { abandonTurn, startPlainTurn, startSessionTurn, withStatus } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

export interface UseSettings extends TtlBounds {
  readonly leaseMs: number
  /** Every completed turn restarts the session's time to live. */
  readonly sliding: boolean
  /** Turns of a session that does not live: `miss` forwards them without a cache, `reject` answers 404 or 410. */
  readonly unknownSession: 'miss' | 'reject'
}

/**
 * Handles a turn of a session from its headers; `body` only names the model of a turn without one. `cached` is an
 * earlier response to the same request: it is sent if the session lives and has its model, or if the session is unknown
 * or deleted; an expired session starts anew with a computed turn. What it returns rejects with GatewayError.
 */
export const createUseSession = (
  parts: TurnParts & { readonly tenants: Tenants; readonly turns: Pick<ActiveTurns, 'completeCached'> },
  settings: UseSettings,
) => {
  const unchanged: TurnExpiry = settings.sliding ? { kind: 'slide' } : { kind: 'keep' }

  const plainTurn = async (
    turn: UseTurn,
    reason: MissReason,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Decision<TurnTicket>> => {
    const cacheStatus = missStatus(reason)
    if (turn.cached !== undefined) return cachedResponse(turn.cached, { ...headers, 'x-context-cache': cacheStatus })
    // The id may be that of another tenant's session: what is known of it decides nothing, and nothing is added to it.
    // While the store is away nobody knows, and a session's turns stay on its pod.
    const key = reason === 'store_unavailable' ? turn.key : hash('sha256', `${turn.tenant} ${turn.key}`, 'base64url')
    const route = routeTurn(parts, turn.request, { key, model: namedModel(turn.request, turn.body) })
    return withStatus(await startPlainTurn(parts, { ...turn, route }, turn.scope), cacheStatus, headers)
  }

  const rejectUnknown = (code: 'session_not_found' | 'session_deleted' | 'session_expired'): void => {
    if (settings.unknownSession === 'reject') throw new GatewayError(code, { param: 'x-session-id' })
  }

  const sessionTurn = async (turn: UseTurn, begun: Live): Promise<Decision<TurnTicket>> => {
    const { request, id, key, turnId, tenant, cached } = turn
    const record = begun.kind === 'active' ? begun.record : undefined
    const { model, ttlSeconds: lastTtlSeconds } = begun.kind === 'active' ? begun.record : begun
    const ttlSeconds = turn.ttlSeconds ?? lastTtlSeconds
    const restartedMs = begun.nowMs + ttlSeconds * 1000
    const expiry: TurnExpiry =
      turn.ttlSeconds === undefined ? unchanged : { kind: 'set', ttlSeconds, expiresAtMs: restartedMs }
    const expiresAtMs = (expiry.kind === 'keep' ? record?.expiresAtMs : undefined) ?? restartedMs
    const headers = sessionHeaders(id, { expiresAtMs, ttlSeconds })
    if (cached?.model === model && record?.pod !== undefined) {
      const cacheStatus = noneStatus('response_cached')
      const pool = parts.pools.forModel(model).name
      const session = { key, tenant, model, expiry }
      const ticket = { turnId, pool, pod: record.pod, cacheStatus, ...traceOf(request), session }
      await parts.turns.completeCached(ticket, cached.response.usage)
      return cachedResponse(cached, { ...headers, 'x-context-cache': cacheStatus })
    }
    if (record === undefined) parts.pools.forget(key)
    const session = record ?? { key, model }
    const route = routeTurn(parts, request, session)
    const routed = { turnId, route, tenant, session, expiry, restarted: record === undefined }
    const { presence, forward } = await startSessionTurn(parts, routed, turn.scope)
    const cacheStatus =
      begun.kind === 'active' ? presenceStatus(presence, begun.record.kvStatus) : missStatus(endedReason(begun.cause))
    return { ...withStatus(forward, cacheStatus, headers), expectModel: model }
  }

  return async (
    given: Pick<UseTurn, 'request' | 'id' | 'cached' | 'body' | 'scope'>,
  ): Promise<Decision<TurnTicket>> => {
    const { request, id } = given
    checkSpliceable(request)
    const tenant = parts.tenants.tenantOf(request)
    const ttlSeconds = parseTtlHeader(request, settings)
    const turnId = turnIdFor(request)
    const key = sessionKeyOf(id)
    const turn: UseTurn = { ...given, key, tenant, turnId, ttlSeconds }
    const begin = parts.store.begin({ key, tenant, turnId, leaseMs: settings.leaseMs })
    const begun = await begin.catch((error: unknown) => {
      reportFault(parts.events, 'begin', error)
      return { kind: 'store_unavailable' as const }
    })
    parts.events.lookedUp(begun.kind)
    switch (begun.kind) {
      case 'store_unavailable':
        return plainTurn(turn, 'store_unavailable', { 'x-session-id': id })
      case 'unknown':
        rejectUnknown('session_not_found')
        return plainTurn(turn, 'session_not_found')
      case 'deleted':
        rejectUnknown('session_deleted')
        return plainTurn(turn, 'session_deleted')
      case 'expired':
      case 'active':
        try {
          if (begun.kind === 'expired') rejectUnknown('session_expired')
          return await sessionTurn(turn, begun)
        } catch (error) {
          await abandonTurn(parts, turn)
          throw error
        }
    }
  }
}

type Live = Extract<BeginOutcome, { readonly kind: 'active' | 'expired' }>

interface UseTurn {
  readonly request: GatewayRequest
  readonly id: string
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly turnId: string
  /** From the request's own header. */
  readonly ttlSeconds: number | undefined
  readonly cached: CacheHit | undefined
  /** Undefined: it does not reach the gateway. */
  readonly body: Buffer | undefined
  readonly scope: RequestScope
}

const endedReason = (cause: Extract<BeginOutcome, { readonly kind: 'expired' }>['cause']): MissReason =>
  cause === 'eviction' ? 'session_evicted' : 'session_expired'
