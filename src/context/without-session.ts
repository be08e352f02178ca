import type { Decision } from './context-cache-manager.ts'
import type { BegunTurn } from './continue-session.ts'
import { cachedResponse } from './response-cache-handler.ts'
import { type MissReason, missStatus } from './response-headers.ts'
import { routeTurn } from './route-turn.ts'
import type { TurnParts } from './session-turn.ts'
import { startPlainTurn, withStatus } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** A turn whose session cannot be used. */
export interface TurnWithoutSession
  extends Pick<BegunTurn, 'request' | 'turnId' | 'tenant' | 'namedBy' | 'cached' | 'scope'> {
  /** Keeps such turns together. */
  readonly key: string
  readonly model: string | undefined
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
