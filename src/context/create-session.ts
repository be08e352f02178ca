import { createHmac } from 'node:crypto'
import { readCreateBody } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { InferenceApi } from '../openai/inference-api.ts'
import { type JsonLimits, parseJsonObject } from '../openai/parse-json-object.ts'
import type { RoutingInput } from '../routing/router.ts'
import type { SessionRecord, TenantKey } from '../sessions/session-record.ts'
import { type RetryKey, StoreUnavailableError } from '../sessions/session-store.ts'
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
import { checkJsonBody } from './content-headers.ts'
import type {
  Decision,
  ForwardDecision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
} from './context-cache-manager.ts'
import { inferencePaths } from './request-path.ts'
import { retryKeyOf } from './retry-key.ts'
import { routingFacts } from './routing-facts.ts'
import { createSessionHeaders } from './session-headers.ts'
import { contentKeyOf, newSessionId, sessionKeyOf } from './session-id.ts'
import type { SessionSeal } from './session-seal.ts'
import type { Tenants } from './tenant.ts'
import { parseTtlHeader, type TtlBounds } from './ttl.ts'

export interface CreateSettings extends TtlBounds, JsonLimits {
  readonly defaultTtlSeconds: number
  readonly leaseMs: number
  /** Every completed turn sets the deadline anew, the first one too. */
  readonly sliding: boolean
  /** Signs what is remembered of a create for its retries. */
  readonly secret: string
}

/** Handles a request that creates a session: its headers first, then its body. */
export interface CreateSession {
  /** `api` is fixed on an inference path; on `/v1/context` (undefined) the body tells. @throws GatewayError */
  onHeaders(request: GatewayRequest, api: InferenceApi | undefined): HeadersDecision
}

export const createCreateSession = (
  parts: TurnParts & { readonly tenants: Tenants; readonly seal: SessionSeal },
  settings: CreateSettings,
): CreateSession => {
  const sessionHeaders = createSessionHeaders()

  const decide = async (create: CheckedCreate, scope: RequestScope): Promise<Decision> => {
    const id = newSessionId()
    const turnId = turnIdFor(create.request)
    const { model } = create
    const routing = routingFacts(parts.forecast, create.request, {
      key: sessionKeyOf(id),
      model,
      pod: undefined,
      kv: undefined,
    })
    const route = routeTurn(parts, create.request, routing)
    const written = await write(create, { id, turnId, route })
    if (written.kind === 'store-unavailable') return withoutSession(create, { turnId, route }, written.error, scope)
    try {
      return await firstTurn(create, { written, turnId, route, routing }, scope)
    } catch (error) {
      await abandonTurn(parts, { key: written.record.key, turnId })
      throw error
    }
  }

  const firstTurn = async (
    create: CheckedCreate,
    turn: {
      readonly written: WrittenSession
      readonly turnId: string
      readonly route: Route
      readonly routing: RoutingInput
    },
    scope: RequestScope,
  ): Promise<Decision> => {
    const { record } = turn.written
    const isNew = turn.written.kind === 'created'
    const sessionId = parts.seal.open(record.sealedId, create.tenant)
    if (sessionId === undefined)
      throw new GatewayError('internal_error', { cause: 'a sealed session id could not be opened' })
    // A retry continues the session that the first try made, where its KV lies.
    const routing = isNew ? turn.routing : routingFacts(parts.forecast, create.request, record)
    const target = isNew ? turn.route : routeTurn(parts, create.request, routing)
    const attached = await attachTurn(
      parts,
      {
        session: record.key,
        tenant: create.tenant,
        model: create.model,
        turnId: turn.turnId,
        pod: target.pod,
        kv: record.kv,
        expiry: settings.sliding ? { kind: 'slide' } : { kind: 'keep' },
        createdAtMs: record.createdAtMs,
        contentKey: () => contentKeyOf(sessionId),
        routing,
        opening: { form: create.form, body: create.body },
      },
      scope,
    )
    if (isNew) parts.events.sessionCreated(record.key)
    const cache = isNew ? missLine('new_session') : presenceLine(attached.presence, record.kvNote)
    return {
      ...forward(create, target),
      requestHeaders: { 'x-session-id': sessionId },
      splice: attached.splice,
      responseHeaders: sessionHeaders(sessionId, record, cache),
      ticket: attached.ticket,
    }
  }

  const write = async (
    create: CheckedCreate,
    turn: { readonly id: string; readonly turnId: string; readonly route: Route },
  ): Promise<Written> => {
    try {
      const outcome = await parts.store.create({
        key: sessionKeyOf(turn.id),
        tenant: create.tenant,
        sealedId: parts.seal.seal(turn.id, create.tenant),
        model: create.model,
        ttlSeconds: create.ttlSeconds,
        pod: turn.route.pod,
        turnId: turn.turnId,
        leaseMs: settings.leaseMs,
        retryOf: create.retryOf,
      })
      if (outcome.kind === 'key-reused') throw new GatewayError('idempotency_key_reused', { param: 'Idempotency-Key' })
      return outcome
    } catch (error) {
      if (error instanceof GatewayError) throw error
      if (error instanceof StoreUnavailableError) parts.events.storeFault('create', error)
      else parts.events.fault('create', error)
      return { kind: 'store-unavailable', error }
    }
  }

  /** An inference request is worth its answer even when no session can be made of it; `POST /v1/context` is about the session. */
  const withoutSession = (
    create: CheckedCreate,
    turn: { readonly turnId: string; readonly route: Route },
    cause: unknown,
    scope: RequestScope,
  ): Decision | Promise<Decision> => {
    if (create.api === undefined) throw new GatewayError('session_store_unavailable', { cause })
    const { turnId, route } = turn
    return whenAdmitted(parts, { turnId, model: create.model, pod: route.pod }, { laterMs: 0, scope }, () => ({
      ...forward(create, route),
      responseHeaders: { 'x-context-cache': noneLine('store_unavailable') },
      ...startPlainTurn(parts, { turnId, pod: route.pod, tenant: create.tenant }, scope),
    }))
  }

  return {
    onHeaders: (request, api) => {
      checkJsonBody(request)
      const tenant = parts.tenants.tenantOf(request)
      const ttlSeconds = parseTtlHeader(request.header('x-session-ttl'), settings) ?? settings.defaultTtlSeconds
      if (request.endOfStream) throw new GatewayError('invalid_json', { message: 'The request has no body.' })
      return {
        kind: 'need-body',
        decide: (body, scope) => {
          const { model, form } = readCreateBody(parseJsonObject(body, settings), api)
          const bodyDigest = createHmac('sha256', settings.secret)
            .update(`body\n${form}\n`)
            .update(body)
            .digest('base64url')
          const retryOf = retryKeyOf(request, { tenant, bodyDigest, secret: settings.secret })
          return decide({ request, api, form, body, model, tenant, ttlSeconds, retryOf }, scope)
        },
      }
    },
  }
}

interface CheckedCreate {
  readonly request: GatewayRequest
  readonly api: InferenceApi | undefined
  readonly form: InferenceApi
  readonly body: Uint8Array
  readonly model: string
  readonly tenant: TenantKey
  readonly ttlSeconds: number
  readonly retryOf: RetryKey | undefined
}

interface WrittenSession {
  readonly kind: 'created' | 'existing'
  readonly record: SessionRecord
}

type Written = WrittenSession | { readonly kind: 'store-unavailable'; readonly error: unknown }

const forward = (create: CheckedCreate, route: Route): ForwardDecision => ({
  kind: 'forward',
  destinations: route.destinations,
  path: create.api === undefined ? inferencePaths[create.form] : undefined,
  requestHeaders: {},
  splice: undefined,
  expectModel: undefined,
  responseHeaders: {},
  ticket: undefined,
})
