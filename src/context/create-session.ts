import type { SlicedWork, Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { type CreateBody, type InferenceApi, inferencePaths, readCreateBody } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { CreateOutcome, IdempotencyKey, TurnExpiry } from '../sessions/session-store.ts'
import type { Decision, GatewayRequest, HeadersDecision, RequestScope } from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import { idempotencyKeyOf } from './idempotency.ts'
import { checkJsonBody, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import { missStatus, noneStatus, presenceStatus, sessionHeaders } from './response-headers.ts'
import { type Route, routeTurn } from './route-turn.ts'
import { newSessionId, newSessionIdBeside, type SessionIdCipher, sessionKeyOf } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import type { Tenants } from './tenant.ts'
import { limitError } from './tenant-limit-errors.ts'
import { abandonTurn, startPlainTurn, startSessionTurn, withStatus } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

export interface CreateSettings extends TtlBounds, JsonLimits {
  readonly defaultTtlSeconds: number
  readonly leaseMs: number
  /** Every completed turn restarts the session's time to live, the first one too. */
  readonly sliding: boolean
  /** Key of the HMACs by which a repeated create is recognised. */
  readonly secret: string
}

/**
 * Handles a request that creates a session: its headers first, then its body. `api` is fixed on an inference path; on
 * `/v1/context` (undefined) the body decides. What it returns throws GatewayError.
 */
export const createCreateSession = (
  parts: TurnParts & { readonly tenants: Tenants; readonly sessionIds: SessionIdCipher; readonly slices: Slices },
  settings: CreateSettings,
) => {
  const expiry: TurnExpiry = settings.sliding ? { kind: 'slide' } : { kind: 'keep' }

  /** An inference request is answered even if its session cannot be made; `POST /v1/context` is about the session. */
  const createAndForward = async (create: CheckedCreate, scope: RequestScope): Promise<Decision<TurnTicket>> => {
    const { request, api, tenant, model } = create
    const { retryOf } = create
    const id = retryOf === undefined ? newSessionId() : newSessionIdBeside(retryOf.digest, parts.store)
    const turnId = turnIdFor(request)
    const route = routeTurn(parts, request, { key: sessionKeyOf(id), model })
    const written = await write(create, { id, turnId, pod: route.pod })
    if (written.kind !== 'store-unavailable') return forwardFirstTurn(create, { turnId, route, ...written }, scope)
    if (api === undefined) throw new GatewayError('session_store_unavailable', { cause: written.error })
    parts.events.lookedUp('store_unavailable', undefined)
    const forward = await startPlainTurn(parts, { turnId, route, tenant }, scope)
    return withStatus(forward, { cacheStatus: noneStatus('store_unavailable') })
  }

  const write = async (
    { tenant, model, ttlSeconds, retryOf }: CheckedCreate,
    { id, turnId, pod }: { readonly id: string; readonly turnId: string; readonly pod: string },
  ): Promise<WrittenSession | { readonly kind: 'store-unavailable'; readonly error: unknown }> => {
    const sealedId = parts.sessionIds.encrypt(id, tenant)
    const session = { key: sessionKeyOf(id), tenant, sealedId, model, ttlSeconds, pod }
    try {
      const outcome = await parts.store.create({ ...session, turnId, leaseMs: settings.leaseMs, retryOf })
      if (outcome.kind === 'key-reused') throw new GatewayError('idempotency_key_reused', { param: 'Idempotency-Key' })
      if (outcome.kind === 'limited') throw limitError(outcome)
      return outcome
    } catch (error) {
      if (error instanceof GatewayError) throw error
      reportFault(parts.events, 'create', error)
      return { kind: 'store-unavailable', error }
    }
  }

  const forwardFirstTurn = async (
    { request, api, tenant, form }: CheckedCreate,
    { kind, record, turnId, ...first }: WrittenSession & { readonly turnId: string; readonly route: Route },
    scope: RequestScope,
  ): Promise<Decision<TurnTicket>> => {
    const isNew = kind === 'created'
    try {
      const id = parts.sessionIds.decrypt(record.sealedId, tenant)?.id
      if (id === undefined) throw new GatewayError('internal_error', { cause: 'a session id could not be decrypted' })
      // A retry continues the session of the first try, where its KV lies.
      const route = isNew ? first.route : routeTurn(parts, request, record)
      const turn = { turnId, route, tenant, session: record, expiry }
      const { presence, forward } = await startSessionTurn(parts, turn, scope)
      if (isNew) parts.events.sessionCreated(record.key)
      const cacheStatus = isNew ? missStatus('new_session') : presenceStatus(presence, record.kvStatus)
      return {
        ...withStatus(forward, { cacheStatus }, sessionHeaders(id, record)),
        // `/v1/context` is not a path of the engine.
        path: api === undefined ? inferencePaths[form] : undefined,
        requestHeaders: { 'x-session-id': id, ...forward.requestHeaders },
      }
    } catch (error) {
      await abandonTurn(parts, { key: record.key, tenant, turnId })
      throw error
    }
  }

  function* readBody(
    request: GatewayRequest,
    body: Buffer,
    { api, tenant }: Pick<CheckedCreate, 'api' | 'tenant'>,
  ): SlicedWork<CreateBody & Pick<CheckedCreate, 'retryOf'>> {
    const read = yield* readCreateBody(body, api, settings)
    const { form } = read
    const retryOf = yield* idempotencyKeyOf(request, { tenant, form, body, secret: settings.secret })
    return { ...read, retryOf }
  }

  return (request: GatewayRequest, api: InferenceApi | undefined): HeadersDecision<TurnTicket> => {
    checkJsonBody(request)
    const tenant = parts.tenants.tenantOf(request)
    const ttlSeconds = parseTtlHeader(request, settings) ?? settings.defaultTtlSeconds
    if (request.endOfStream) throw new GatewayError('invalid_json', { message: 'The request has no body.' })
    return {
      kind: 'need-body',
      // No function here keeps the body: it is free as soon as it is read, while the turn may wait for minutes.
      decide: (body, scope) =>
        parts.slices.run(readBody(request, body, { api, tenant }), scope.signal).then((read) => {
          scope.releaseBody()
          return createAndForward({ request, api, tenant, ttlSeconds, ...read }, scope)
        }),
    }
  }
}

interface CheckedCreate extends CreateBody {
  readonly request: GatewayRequest
  readonly api: InferenceApi | undefined
  readonly tenant: TenantKey
  readonly ttlSeconds: number
  readonly retryOf: IdempotencyKey | undefined
}

type WrittenSession = Extract<CreateOutcome, { readonly record: unknown }>
