import { hash } from 'node:crypto'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { Decision } from './context-cache-manager.ts'
import { lookUp } from './context-events.ts'
import { type BegunTurn, createContinueSession } from './continue-session.ts'
import type { ActiveTurns } from './end-turn.ts'
import { checkSpliceable, namedModel, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import type { MissReason } from './response-headers.ts'
import { sessionKeyOf } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import type { Tenants } from './tenant.ts'
import { limitError } from './tenant-limit-errors.ts'
import { abandonTurn } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'
import { runWithoutSession } from './without-session.ts'

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
  const continueSession = createContinueSession(parts)
  const expiry: BegunTurn['expiry'] = settings.sliding ? { kind: 'slide' } : { kind: 'keep' }

  const plainTurn = (
    turn: UseTurn,
    reason: MissReason,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Decision<TurnTicket>> => {
    // The id may be that of another tenant's session: what is known of it decides nothing, and nothing is added to it.
    // While the store is away nobody knows, and a session's turns stay on its pod.
    const key = reason === 'store_unavailable' ? turn.key : hash('sha256', `${turn.tenant} ${turn.key}`, 'base64url')
    const model = namedModel(turn.request, turn.body)
    return runWithoutSession(parts, { ...turn, key, model }, reason, headers)
  }

  const rejectUnknown = (code: 'session_not_found' | 'session_deleted' | 'session_expired'): void => {
    if (settings.unknownSession === 'reject') throw new GatewayError(code, { param: 'x-session-id' })
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
    const begin = async (owner: TenantKey) => ({
      owner,
      ...(await parts.store.begin({ key, tenant: owner, turnId, leaseMs: settings.leaseMs })),
    })
    const beginAsEither = async () => {
      const first = await begin(tenant)
      const former = first.kind === 'unknown' ? parts.tenants.formerTenantOf(request) : undefined
      return former === undefined ? first : await begin(former)
    }
    const begun = await lookUp(parts.events, beginAsEither(), undefined)
    const isOwned = begun.kind === 'active' || begun.kind === 'expired'
    const common = { ...given, key, turnId, ttlSeconds, expiry, namedBy: undefined }
    const turn: UseTurn = { ...common, tenant: isOwned ? begun.owner : tenant }
    switch (begun.kind) {
      case 'store_unavailable':
        return plainTurn(turn, 'store_unavailable', { 'x-session-id': id })
      case 'limited':
        throw limitError(begun)
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
          return await continueSession(turn, begun)
        } catch (error) {
          await abandonTurn(parts, turn)
          throw error
        }
    }
  }
}

interface UseTurn extends BegunTurn {
  /** Undefined: it does not reach the gateway. */
  readonly body: Buffer | undefined
}
