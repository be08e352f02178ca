import { type InferenceApi, inferencePaths, readCreateBody } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { type JsonLimits, parseJsonObject } from '../openai/parse-json-object.ts'
import type { SessionRecord, TenantKey } from '../sessions/session-record.ts'
import type { RetryKey } from '../sessions/session-store.ts'
import type {
  Decision,
  ForwardDecision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
} from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import { idempotencyKeyOf } from './idempotency.ts'
import { checkJsonBody, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import { missStatus, noneStatus, presenceStatus, sessionHeaders } from './response-headers.ts'
import { contentKeyOf, newSessionId, type SessionIdCipher, sessionKeyOf } from './session-id.ts'
import type { Tenants } from './tenant.ts'
import {
  abandonTurn,
  type Route,
  routeTurn,
  routingInputOf,
  startPlainTurn,
  startSessionTurn,
  type TurnParts,
} from './turn.ts'

export interface CreateSettings extends TtlBounds, JsonLimits {
  readonly defaultTtlSeconds: number
  readonly leaseMs: number
  /** Every completed turn restarts the session's time to live, the first one too. */
  readonly sliding: boolean
  /** Key of the HMACs by which a repeated create is recognised. */
  readonly secret: string
}

/**
 * Handles a request that creates a session: its headers first, then its body. `api` is fixed on an inference path; on `/v1/context` (undefined)
 * the body decides.
 * @throws GatewayError
 */
export type CreateSession = (request: GatewayRequest, api: InferenceApi | undefined) => HeadersDecision

export const createCreateSession = (
  parts: TurnParts & { readonly tenants: Tenants; readonly sessionIds: SessionIdCipher },
  settings: CreateSettings,
): CreateSession => {
  const createAndForward = async (create: CheckedCreate, scope: RequestScope): Promise<Decision> => {
    const id = newSessionId()
    const turnId = turnIdFor(create.request)
    const input = routingInputOf(parts.predictor, create.request, { key: sessionKeyOf(id), model: create.model })
    const turn = { id, turnId, route: routeTurn(parts, create.request, input) }
    const written = await write(create, turn)
    if (written.kind === 'store-unavailable') return forwardWithoutSession(create, turn, written.error, scope)
    try {
      return await forwardFirstTurn(create, { ...turn, written }, scope)
    } catch (error) {
      await abandonTurn(parts, { key: written.record.key, turnId })
      throw error
    }
  }

  const forwardFirstTurn = async (
    create: CheckedCreate,
    { turnId, written, ...first }: NewTurn & { readonly written: WrittenSession },
    scope: RequestScope,
  ): Promise<Decision> => {
    const { request, tenant } = create
    const { record } = written
    const isNew = written.kind === 'created'
    const id = parts.sessionIds.decrypt(record.sealedId, tenant)
    if (id === undefined) throw new GatewayError('internal_error', { cause: 'a session id could not be decrypted' })
    // A retry continues the session of the first try, where its KV lies.
    const route = isNew ? first.route : routeTurn(parts, request, routingInputOf(parts.predictor, request, record))
    const { presence, forward } = await startSessionTurn(
      parts,
      {
        turnId,
        route,
        tenant,
        session: record,
        expiry: settings.sliding ? { kind: 'slide' } : { kind: 'keep' },
        contentKey: () => contentKeyOf(id),
        opening: { form: create.form, body: create.body },
      },
      scope,
    )
    if (isNew) parts.events.sessionCreated(record.key)
    return {
      ...forward,
      path: enginePathOf(create),
      requestHeaders: { 'x-session-id': id },
      responseHeaders: sessionHeaders(
        id,
        record,
        isNew ? missStatus('new_session') : presenceStatus(presence, record.kvNote),
      ),
    }
  }

  const write = async (create: CheckedCreate, turn: NewTurn): Promise<Written> => {
    const { tenant, model, ttlSeconds, retryOf } = create
    const { id, turnId, route } = turn
    try {
      const outcome = await parts.store.create({
        key: sessionKeyOf(id),
        tenant,
        sealedId: parts.sessionIds.encrypt(id, tenant),
        model,
        ttlSeconds,
        pod: route.pod,
        turnId,
        leaseMs: settings.leaseMs,
        retryOf,
      })
      if (outcome.kind === 'key-reused') throw new GatewayError('idempotency_key_reused', { param: 'Idempotency-Key' })
      return outcome
    } catch (error) {
      if (error instanceof GatewayError) throw error
      reportFault(parts.events, 'create', error)
      return { kind: 'store-unavailable', error }
    }
  }

  /** An inference request is answered even when no session can be made of it; `POST /v1/context` is about the session. */
  const forwardWithoutSession = async (
    create: CheckedCreate,
    { turnId, route }: NewTurn,
    cause: unknown,
    scope: RequestScope,
  ): Promise<ForwardDecision> => {
    if (create.api === undefined) throw new GatewayError('session_store_unavailable', { cause })
    const forward = await startPlainTurn(parts, { turnId, route, tenant: create.tenant }, scope)
    return { ...forward, responseHeaders: { 'x-context-cache': noneStatus('store_unavailable') } }
  }

  return (request, api) => {
    checkJsonBody(request)
    const tenant = parts.tenants.tenantOf(request)
    const ttlSeconds = parseTtlHeader(request, settings) ?? settings.defaultTtlSeconds
    if (request.endOfStream) throw new GatewayError('invalid_json', { message: 'The request has no body.' })
    return {
      kind: 'need-body',
      decide: async (body, scope) => {
        const { model, form } = readCreateBody(parseJsonObject(body, settings), api)
        const retryOf = idempotencyKeyOf(request, { tenant, form, body, secret: settings.secret })
        return createAndForward({ request, api, form, body, model, tenant, ttlSeconds, retryOf }, scope)
      },
    }
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

interface NewTurn {
  readonly id: string
  readonly turnId: string
  readonly route: Route
}

interface WrittenSession {
  readonly kind: 'created' | 'existing'
  readonly record: SessionRecord
}

type Written = WrittenSession | { readonly kind: 'store-unavailable'; readonly error: unknown }

/** `/v1/context` is not a path of the engine. */
const enginePathOf = ({ api, form }: CheckedCreate): string | undefined =>
  api === undefined ? inferencePaths[form] : undefined
