import { createHash } from 'node:crypto'
import { GatewayError } from '../openai/gateway-error.ts'
import { ClientLeftError, type TurnParts } from './begin-turn.ts'
import type { CachedAnswers } from './cached-answers.ts'
import type {
  ContextCacheManager,
  Decision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
} from './context-cache-manager.ts'
import type { CreateSession } from './create-session.ts'
import type { EndTurn } from './end-turn.ts'
import type { ManageSessions } from './manage-sessions.ts'
import { createOpenTurns } from './open-turns.ts'
import { type CachedAnswer, replayAnswer } from './replay-answer.ts'
import { requestOutcomeOf, requestRouteOf } from './request-kind.ts'
import { parseRequestPath, type RequestPath } from './request-path.ts'
import { holdsSessionId, isSessionId } from './session-id.ts'
import type { UseSession } from './use-session.ts'

/** Hands each request to the part that knows it, and turns whatever they throw into an answer. */
export const createContextCacheManager = (
  parts: Pick<TurnParts, 'router' | 'events'> & {
    readonly createSession: CreateSession
    readonly useSession: UseSession
    readonly manageSessions: ManageSessions
    readonly endTurn: EndTurn
    /** Undefined: the response cache is off. */
    readonly cachedAnswers?: CachedAnswers | undefined
  },
): ContextCacheManager => {
  const openTurns = createOpenTurns(parts.endTurn)

  const reject = (where: string, thrown: unknown): Decision => {
    const error = GatewayError.from(thrown)
    if (!(thrown instanceof ClientLeftError) && error.code === 'internal_error') parts.events.fault(where, error.cause)
    return { kind: 'reject', error }
  }

  const onInference = (
    request: GatewayRequest,
    path: InferencePath,
    scope: RequestScope,
  ): HeadersDecision | Promise<HeadersDecision> => {
    if (request.method !== 'POST') return { kind: 'passthrough', destinations: [] }
    const lookedUp = parts.cachedAnswers?.onHeaders(request, path.api, async (itsScope, cached) =>
      onTurn(request, path, itsScope, cached),
    )
    return lookedUp ?? onTurn(request, path, scope)
  }

  const onTurn = (
    request: GatewayRequest,
    path: InferencePath,
    scope: RequestScope,
    cached?: CachedAnswer,
  ): HeadersDecision | Promise<HeadersDecision> => {
    const ids = request.header('x-session-id')
    const [id] = ids
    if (id === undefined) {
      if (request.header('x-session-ttl').length > 0) return parts.createSession.onHeaders(request, path.api)
      return cached === undefined ? { kind: 'passthrough', destinations: [] } : replayAnswer(cached)
    }
    if (ids.length === 1 && isSessionId(id)) return parts.useSession.onHeaders(request, id, scope, cached)
    if (holdsSessionId(ids)) throw new GatewayError('invalid_session_id', { param: 'x-session-id' })
    return cached === undefined ? passForeign(request, id) : replayAnswer(cached)
  }

  /** An id of another system says only which requests belong together. */
  const passForeign = (request: GatewayRequest, id: string): Decision => {
    const affinityKey = createHash('sha256').update(id, 'latin1').digest('base64url')
    const outcome = parts.router.route(
      { affinityKey: id === '' ? undefined : affinityKey, lastPod: undefined },
      request.header('routing-strategy')[0],
    )
    return { kind: 'passthrough', destinations: outcome.kind === 'routed' ? [outcome.pod, ...outcome.fallbacks] : [] }
  }

  const dispatch = (
    request: GatewayRequest,
    path: RequestPath,
    scope: RequestScope,
  ): HeadersDecision | Promise<HeadersDecision> => {
    switch (path.kind) {
      case 'inference':
        return onInference(request, path, scope)
      case 'contexts':
        if (request.method === 'POST') return parts.createSession.onHeaders(request, undefined)
        if (request.method === 'GET') return parts.manageSessions.list(request, path.query)
        throw new GatewayError('method_not_allowed', { headers: { allow: 'GET, POST' } })
      case 'context':
        return parts.manageSessions.one(request, path.id)
      case 'other':
        throw new GatewayError('unknown_path')
    }
  }

  const counted = (request: GatewayRequest, path: RequestPath, decision: Decision): Decision => {
    parts.events.requestDecided(requestRouteOf(request, path), requestOutcomeOf(decision))
    openTurns.decided(decision)
    return decision
  }

  return {
    onHeaders: async (request, scope) => {
      const path = parseRequestPath(request.path)
      try {
        const decision = await dispatch(request, path, scope)
        if (decision.kind !== 'need-body') return counted(request, path, decision)
        return {
          kind: 'need-body',
          decide: async (body, bodyScope) => {
            try {
              return counted(request, path, await decision.decide(body, bodyScope))
            } catch (error) {
              return counted(request, path, reject('body', error))
            }
          },
        }
      } catch (error) {
        return counted(request, path, reject('headers', error))
      }
    },
    endTurn: openTurns.endTurn,
    clientDisconnected: openTurns.clientDisconnected,
  }
}

type InferencePath = Extract<RequestPath, { readonly kind: 'inference' }>
