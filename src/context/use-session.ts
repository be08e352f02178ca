import { GatewayError } from '../openai/gateway-error.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import { type BeginOutcome, StoreUnavailableError, type TurnExpiry } from '../sessions/session-store.ts'
import {
  abandonTurn,
  attachTurn,
  type Route,
  routeTurn,
  startPlainTurn,
  type TurnParts,
  turnIdFor,
  whenAdmitted,
} from './begin-turn.ts'
import { missLine, noneLine, presenceLine } from './cache-line.ts'
import { checkNotCompressed } from './content-headers.ts'
import type { Decision, ForwardDecision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { createKnownSessionKeys } from './known-session-keys.ts'
import { type CachedAnswer, replayAnswer } from './replay-answer.ts'
import { completeReplayedTurn } from './replayed-turn.ts'
import { routingFacts } from './routing-facts.ts'
import { createSessionHeaders } from './session-headers.ts'
import { contentKeyOf } from './session-id.ts'
import type { Tenants } from './tenant.ts'
import { parseTtlHeader, type TtlBounds } from './ttl.ts'

export interface UseSettings extends TtlBounds {
  readonly leaseMs: number
  /** Every completed turn sets the deadline anew. */
  readonly sliding: boolean
  /** What a turn of a session that is not there gets: its answer without a cache, or 404 and 410. */
  readonly unknownSession: 'miss' | 'reject'
}

/** Handles a turn of a session, from its headers alone. */
export interface UseSession {
  /**
   * `cached`: an earlier answer to the same request. It is sent again if the session lives and is of its model, or if there is no session to
   * speak of; a session that has expired starts anew with a computed turn.
   * @throws GatewayError
   */
  onHeaders(request: GatewayRequest, sessionId: string, scope: RequestScope, cached?: CachedAnswer): Promise<Decision>
}

export const createUseSession = (
  parts: TurnParts & { readonly tenants: Tenants },
  settings: UseSettings,
): UseSession => {
  const sessionHeaders = createSessionHeaders()
  const keyOf = createKnownSessionKeys()

  /** Whatever is wrong with the store, the turn can be answered without it. */
  const notBegun = (error: unknown): Begun => {
    if (error instanceof StoreUnavailableError) parts.events.storeFault('begin', error)
    else parts.events.fault('begin', error)
    return { kind: 'store_unavailable' }
  }

  /** A turn that has no session to use or to update. */
  const plainTurn = (
    request: GatewayRequest,
    turn: {
      readonly id: string
      readonly tenant: TenantKey
      readonly turnId: string
      readonly headers: Record<string, string>
      readonly cached: CachedAnswer | undefined
    },
    scope: RequestScope,
  ): Decision | Promise<Decision> => {
    if (turn.cached !== undefined) return replayAnswer(turn.cached, turn.headers)
    const route = routeTurn(parts, request, { affinityKey: keyOf(turn.id), lastPod: undefined })
    const { turnId, tenant } = turn
    return whenAdmitted(parts, { turnId, model: undefined, pod: route.pod }, { laterMs: 0, scope }, () => ({
      ...forward(route),
      responseHeaders: turn.headers,
      ...startPlainTurn(parts, { turnId, pod: route.pod, tenant }, scope),
    }))
  }

  const sessionTurn = async (request: GatewayRequest, turn: LiveTurn, scope: RequestScope): Promise<Decision> => {
    const { begun, key, turnId, tenant } = turn
    const record = begun.kind === 'active' ? begun.record : undefined
    const { model, ttlSeconds: lastTtlSeconds } = begun.kind === 'active' ? begun.record : begun
    const ttlSeconds = turn.ttlSeconds ?? lastTtlSeconds
    const promisedMs = begun.nowMs + ttlSeconds * 1000
    const expiry = expiryOf({ announced: turn.ttlSeconds, sliding: settings.sliding, promisedMs })
    const expiresAtMs = expiry.kind === 'keep' && record !== undefined ? record.expiresAtMs : promisedMs
    if (turn.cached?.model === model && record?.pod !== undefined) {
      await completeReplayedTurn(parts, { record, pod: record.pod, turnId, expiry }, turn.cached)
      const headers = sessionHeaders(turn.id, { expiresAtMs, ttlSeconds }, noneLine('response_cached'))
      return replayAnswer(turn.cached, headers)
    }
    // What pods hold of an earlier life is not used in this one.
    if (record === undefined) parts.forecast.forget(key)
    const routing = routingFacts(parts.forecast, request, { key, model, pod: record?.pod, kv: record?.kv })
    const route = routeTurn(parts, request, routing)
    const attached = await attachTurn(
      parts,
      {
        session: key,
        tenant,
        model,
        turnId,
        pod: route.pod,
        kv: record?.kv,
        kvNote: record?.kvNote,
        expiry,
        startsAnew: record === undefined,
        createdAtMs: record?.createdAtMs,
        contentKey: () => contentKeyOf(turn.id),
        routing,
      },
      scope,
    )
    const cache =
      begun.kind === 'active'
        ? presenceLine(attached.presence, begun.record.kvNote)
        : missLine(begun.cause === 'eviction' ? 'session_evicted' : 'session_expired')
    // Named one by one, since every turn makes it: a spread takes several times as long.
    return {
      kind: 'forward',
      destinations: route.destinations,
      path: undefined,
      requestHeaders: noHeaders,
      splice: attached.splice,
      expectModel: model,
      responseHeaders: sessionHeaders(turn.id, { expiresAtMs, ttlSeconds }, cache),
      ticket: attached.ticket,
    }
  }

  return {
    onHeaders: async (request, id, scope, cached) => {
      checkNotCompressed(request)
      const tenant = parts.tenants.tenantOf(request)
      const ttlSeconds = parseTtlHeader(request.header('x-session-ttl'), settings)
      const turnId = turnIdFor(request)
      const key = keyOf(id)
      let begun: Begun
      try {
        begun = await parts.store.begin({ key, tenant, turnId, leaseMs: settings.leaseMs })
      } catch (error) {
        begun = notBegun(error)
      }
      parts.events.lookedUp(begun.kind)
      switch (begun.kind) {
        case 'store_unavailable':
          return plainTurn(
            request,
            {
              id,
              tenant,
              turnId,
              cached,
              headers: { 'x-session-id': id, 'x-context-cache': missLine('store_unavailable') },
            },
            scope,
          )
        case 'unknown':
          if (settings.unknownSession === 'reject')
            throw new GatewayError('session_not_found', { param: 'x-session-id' })
          return plainTurn(
            request,
            { id, tenant, turnId, cached, headers: { 'x-context-cache': missLine('session_not_found') } },
            scope,
          )
        case 'deleted':
          if (settings.unknownSession === 'reject') throw new GatewayError('session_deleted', { param: 'x-session-id' })
          return plainTurn(
            request,
            { id, tenant, turnId, cached, headers: { 'x-context-cache': missLine('session_deleted') } },
            scope,
          )
        case 'expired':
        case 'active':
          try {
            if (begun.kind === 'expired' && settings.unknownSession === 'reject') {
              throw new GatewayError('session_expired', { param: 'x-session-id' })
            }
            return await sessionTurn(request, { begun, id, key, tenant, turnId, ttlSeconds, cached }, scope)
          } catch (error) {
            await abandonTurn(parts, { key, turnId })
            throw error
          }
      }
    },
  }
}

type Begun = BeginOutcome | { readonly kind: 'store_unavailable' }

interface LiveTurn {
  readonly begun: Extract<BeginOutcome, { readonly kind: 'active' | 'expired' }>
  readonly id: string
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly turnId: string
  /** From the request's own header. */
  readonly ttlSeconds: number | undefined
  readonly cached: CachedAnswer | undefined
}

const expiryOf = (turn: {
  readonly announced: number | undefined
  readonly sliding: boolean
  readonly promisedMs: number
}): TurnExpiry => {
  if (turn.announced !== undefined) return { kind: 'set', ttlSeconds: turn.announced, expiresAtMs: turn.promisedMs }
  return turn.sliding ? { kind: 'slide' } : { kind: 'keep' }
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

const forward = (route: Route): ForwardDecision => ({
  kind: 'forward',
  destinations: route.destinations,
  path: undefined,
  requestHeaders: noHeaders,
  splice: undefined,
  expectModel: undefined,
  responseHeaders: {},
  ticket: undefined,
})
