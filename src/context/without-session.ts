import type { TenantKey } from '../sessions/session-record.ts'
import type { Decision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { type CacheHit, cachedResponse } from './response-cache-handler.ts'
import { type MissReason, missStatus } from './response-headers.ts'
import { routeTurn } from './route-turn.ts'
import type { TurnParts } from './session-turn.ts'
import { startPlainTurn, withStatus } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** A turn whose session cannot be used. */
export interface TurnWithoutSession {
  readonly request: GatewayRequest
  readonly turnId: string
  readonly tenant: TenantKey
  /** Keeps such turns together. */
  readonly key: string
  readonly model: string | undefined
  readonly namedBy: string | undefined
  readonly cached: CacheHit | undefined
  readonly scope: RequestScope
}

/** Forwards a turn in full, or answers it from the response cache. `headers`: of the response. @throws as `routeTurn` */
export const runWithoutSession = async (
  parts: TurnParts,
  turn: TurnWithoutSession,
  reason: MissReason,
  headers: Readonly<Record<string, string>> = {},
): Promise<Decision<TurnTicket>> => {
  const { request, key, model, namedBy, cached } = turn
  const cacheStatus = missStatus(reason)
  if (cached !== undefined) return cachedResponse(cached, { ...headers, 'x-context-cache': cacheStatus })
  const route = routeTurn(parts, request, { key, model })
  return withStatus(await startPlainTurn(parts, { ...turn, route }, turn.scope), { cacheStatus, namedBy }, headers)
}
