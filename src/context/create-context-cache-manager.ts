import { createSlices } from '../async/slices.ts'
import type { FormerSecret } from '../crypto/former-secret.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { type InferenceApi, inferenceApiOf } from '../openai/create-body.ts'
import { engineUseOf } from '../openai/engine-paths.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { HistoryParts } from '../responses/answer-requests.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionDirectory } from '../sessions/session-directory.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { RequestCancelledError } from './admit-turn.ts'
import type {
  ContextCacheManager,
  Decision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
} from './context-cache-manager.ts'
import type { RequestOutcome, RequestRoute } from './context-events.ts'
import { type CreateSettings, createCreateSession } from './create-session.ts'
import { createDecideChain } from './decide-chain.ts'
import { createActiveTurns, type EndTurnParts, type EndTurnSettings } from './end-turn.ts'
import { createForgetChain } from './forget-chain.ts'
import { createHitCheck } from './hit-check.ts'
import { createKeptResponses, type KeptResponsesParts } from './kept-responses.ts'
import { createManageResponses, historyPathOf } from './manage-responses.ts'
import { createManageSessions } from './manage-sessions.ts'
import { promptFromHeaders } from './named-prompt.ts'
import { createNamedRequests, type DecideUnnamed } from './named-requests.ts'
import { createSessionOperations } from './operate-sessions.ts'
import { createTenantOperations } from './operate-tenants.ts'
import { listedModel, type Pools } from './pools.ts'
import { createReaper, type ReaperSettings } from './reaper.ts'
import { namedModel } from './request-headers.ts'
import { traceOf } from './request-trace.ts'
import {
  type CacheHit,
  cachedResponse,
  createResponseCacheHandler,
  type ResponseCacheParts,
} from './response-cache-handler.ts'
import { createPlainRequests } from './route-plain.ts'
import { containsSessionId, createSessionIdCipher, foreignKeyOf, isSessionId } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import { createTenants } from './tenant.ts'
import { poolHeader } from './turn.ts'
import { createTickets, type TurnTicket } from './turn-ticket.ts'
import type { FollowedRequest, TurnTracer } from './turn-tracer.ts'
import { createUseNamedSession, type UseNamedSettings } from './use-named-session.ts'
import { createUseSession, type UseSettings } from './use-session.ts'

export interface ContextSettings extends CreateSettings, UseSettings, UseNamedSettings, EndTurnSettings, JsonLimits {
  /** Header with the verified principal; undefined: the Authorization credential is the tenant. */
  readonly principalHeader?: string | undefined
  /** How long a deletion waits for the removal of the session's KV, which goes on after that. */
  readonly deleteWaitMs: number
  readonly reaper: ReaperSettings
}

export type ContextParts = Omit<TurnParts, 'hitCheck'> &
  Omit<EndTurnParts, 'triggerSweep' | 'hitCheck' | 'tickets'> & {
    readonly store: SessionStore & RemovalQueue & SessionDirectory
    /** Undefined: the response cache is off. */
    readonly responseCache?: ResponseCacheParts | undefined
    /** Undefined: responses and conversations are not kept. */
    readonly responses?: HistoryParts | undefined
    /** Of turns that continue them. Undefined: none does. */
    readonly keptResponses?: KeptResponsesParts | undefined
    /** Undefined: only `secret` is accepted. */
    readonly former?: FormerSecret | undefined
    /** A clock that never goes back, milliseconds. */
    readonly nowMs: () => number
    /** Default: requests and turns are not followed. */
    readonly tracer?: TurnTracer | undefined
  }

/** The context module of a gateway process: dispatches requests to their handlers, and turns errors into decisions. */
export const createContextCacheManager = (given: ContextParts, settings: ContextSettings) => {
  const { events } = given
  const tickets = createTickets(settings.secret, given.former)
  const parts = { ...given, hitCheck: createHitCheck(events), tickets }
  const slices = createSlices()
  const tenants = createTenants({ ...settings, former: given.former })
  const sessionIds = createSessionIdCipher(settings.secret, given.former)
  const reaper = createReaper({ ...parts, queue: parts.store }, settings.reaper)
  const turns = createActiveTurns({ ...parts, triggerSweep: () => reaper.triggerSweep() }, settings)
  const createSession = createCreateSession({ ...parts, tenants, sessionIds, slices }, settings)
  const useSession = createUseSession({ ...parts, tenants, turns }, settings)
  const useNamedSession = createUseNamedSession({ ...parts, tenants, sessionIds, turns }, settings)
  const decideNamed = createNamedRequests({ use: useNamedSession, slices }, settings)
  const manage = createManageSessions({ ...parts, tenants, sessionIds, reaper, slices }, settings)
  const forgetChain = createForgetChain({ ...parts, reaper }, settings)
  const manageResponses =
    parts.responses && createManageResponses({ ...parts, ...parts.responses, tenants, slices, forgetChain }, settings)
  const plain = createPlainRequests(parts)
  const responseCache =
    parts.responseCache && createResponseCacheHandler({ ...parts.responseCache, tenants, slices }, settings)

  const decideUnnamed =
    (request: GatewayRequest): DecideUnnamed =>
    async (name, by) => {
      if (request.pick !== undefined) return plain.generate(request, name, by)
      return name === undefined ? { kind: 'passthrough', destinations: [] } : passForeign(request, name)
    }
  const decideChain = createDecideChain({ slices, useSession, useNamed: useNamedSession, decideUnnamed }, settings)
  const keptResponses =
    parts.keptResponses &&
    createKeptResponses({ ...parts.keptResponses, pools: parts.pools, tenants, slices, decideChain }, settings)

  /** Without a session a name only groups requests. */
  const passForeign = (request: GatewayRequest, id: string): Decision<TurnTicket> => {
    const affinityKey = foreignKeyOf(id)
    const model = namedModel(request) ?? promptFromHeaders(request)?.model
    const pool = parts.pools.forModel(model)
    const outcome = pool.router.route({ affinityKey, lastPod: undefined, model }, request.header('routing-strategy')[0])
    const destinations = outcome.kind === 'routed' ? [outcome.pod, ...outcome.fallbacks] : []
    return { kind: 'passthrough', destinations, requestHeaders: poolHeader(pool) }
  }

  const decideTurn = async (
    request: GatewayRequest,
    api: InferenceApi,
    scope: RequestScope,
    cached?: CacheHit,
  ): Promise<HeadersDecision<TurnTicket>> => {
    const ids = request.header('x-session-id')
    const [id] = ids
    if (createsByHeader(request)) return createSession(request, api)
    if (id !== undefined && ids.length === 1 && isSessionId(id)) {
      const use = (by: RequestScope, body?: Buffer) => useSession({ request, id, cached, body, scope: by })
      // As envoy.yaml does: until a body has come, other requests may use the slot that a decision names.
      const waits = request.pick !== undefined && !request.endOfStream
      return waits ? { kind: 'need-body', decide: (body, bodyScope) => use(bodyScope, body) } : use(scope)
    }
    if (containsSessionId(ids)) throw new GatewayError('invalid_session_id', { param: 'x-session-id' })
    return decideNamed(request, { api, cached, scope }, async (name = id, by) =>
      cached === undefined ? decideUnnamed(request)(name, by) : cachedResponse(cached),
    )
  }

  /** Paths that Envoy's own routes leave to the engines where the gateway is no endpoint picker. */
  const pickForOther = async (request: GatewayRequest, scope: RequestScope): Promise<HeadersDecision<TurnTicket>> => {
    const [path = ''] = request.path.split('?')
    // Claude Code asks for it before anything else.
    if (path === '/' && request.pick !== undefined && /^(?:GET|HEAD)$/.test(request.method))
      return { kind: 'response', status: 200, body: {}, headers: {} }
    const use = request.pick === undefined ? undefined : engineUseOf(request.method, path)
    if (use === 'reads') return plain.read(request)
    const decision = use === 'generates-otherwise' ? await plain.generateOtherwise(request, scope) : undefined
    if (decision === undefined) throw new GatewayError('unknown_path')
    return decision
  }

  const dispatch = async (
    request: GatewayRequest,
    target: Target,
    scope: RequestScope,
  ): Promise<HeadersDecision<TurnTicket>> => {
    switch (target.kind) {
      case 'inference': {
        const { api } = target
        if (request.method !== 'POST')
          return request.pick === undefined
            ? { kind: 'passthrough', destinations: [] }
            : plain.generate(request, undefined, scope)
        const decide = (by: RequestScope, cached?: CacheHit) => decideTurn(request, api, by, cached)
        const decideAsUsual = async (by: RequestScope) => responseCache?.(request, api, decide) ?? decide(by)
        const asChat = (by: RequestScope) => decideTurn(request, 'chat', by)
        const kept = api === 'responses' ? keptResponses?.(request, { asUsual: decideAsUsual, asChat }) : undefined
        return kept ?? decideAsUsual(scope)
      }
      case 'contexts':
        if (request.method === 'POST') return createSession(request, undefined)
        if (request.method === 'GET') return manage.list(request, target.query)
        throw new GatewayError('method_not_allowed', { headers: { allow: 'GET, POST' } })
      case 'context':
        return manage.one(request, target.id)
      case 'fork':
        return manage.fork(request, target.id)
      case 'history':
        return manageResponses?.(request, target.path, target.query) ?? pickForOther(request, scope)
      case 'other':
        return pickForOther(request, scope)
    }
  }

  const orError = async <T>(
    where: 'headers' | 'body',
    { signal }: RequestScope,
    decided: Promise<T>,
  ): Promise<T | Decision<TurnTicket>> => {
    try {
      return await decided
    } catch (thrown) {
      if (thrown instanceof RequestCancelledError || (signal.aborted && thrown === signal.reason))
        return { kind: 'cancelled' }
      const error = GatewayError.from(thrown)
      if (error.code === 'internal_error') events.fault(where, error.cause)
      return { kind: 'reject', error }
    }
  }

  /** The decision as it is reported and sent. */
  const report = (
    request: GatewayRequest,
    route: RequestRoute,
    followed: FollowedRequest | undefined,
    made: Decision<TurnTicket>,
  ): Decision => {
    const outcome = outcomeLabelOf(made)
    events.requestDecided(route, outcome)
    const decision = followed?.decided(made, { route, outcome, model: modelOf(parts.pools, made) }) ?? made
    if (decision.kind !== 'forward') return decision
    if (decision.ticket === undefined) return { ...decision, ticket: undefined }
    const ticket = { ...traceOf(request), ...decision.ticket }
    turns.started(ticket)
    return { ...decision, ticket: tickets.encode(ticket) }
  }

  const decide = async (
    request: GatewayRequest,
    scope: RequestScope,
    followed: FollowedRequest | undefined,
  ): Promise<HeadersDecision> => {
    const target = targetOf(request)
    const reported = (made: Decision<TurnTicket>) => report(request, target.route, followed, made)
    const decision = await orError('headers', scope, dispatch(request, target, scope))
    if (decision.kind !== 'need-body') return reported(decision)
    // No function here keeps the body: it is free as soon as it is read.
    const onBody = (body: Buffer, by: RequestScope) => orError('body', by, decision.decide(body, by)).then(reported)
    return {
      ...decision,
      decide: followed === undefined ? onBody : (body, by) => followed.run(() => onBody(body, by)),
    }
  }

  const manager: ContextCacheManager = {
    onHeaders: (request, scope) => {
      const followed = given.tracer?.start(request)
      return followed === undefined
        ? decide(request, scope, undefined)
        : followed.run(() => decide(request, scope, followed))
    },
    endTurn: (turn) => turns.endTurn(turn),
    clientDisconnected: (key) => turns.clientDisconnected(key),
  }
  const operations = createSessionOperations({ ...parts, reaper }, settings)
  const tenantOperations = createTenantOperations({ ...parts, reaper })
  return { manager, operations, tenantOperations, reaper, drain: () => turns.drain() }
}

/** Where an engine lists it. */
const modelOf = (pools: Pools, decision: Decision<TurnTicket>): string | undefined => {
  if (decision.kind !== 'forward' || decision.ticket === undefined) return undefined
  const { pool, session, model } = decision.ticket
  return listedModel(pools.named(pool), session?.model ?? model)
}

/** What a request is about, by its path; `route` is its label in metrics. */
type Target = { readonly route: RequestRoute } & (
  | { readonly kind: 'inference'; readonly api: InferenceApi }
  | { readonly kind: 'contexts'; readonly query: URLSearchParams }
  /** `id` as in the path, not decoded: an id of this gateway needs no encoding. */
  | { readonly kind: 'context' | 'fork'; readonly id: string }
  /** Segments of the path behind `/v1/`. */
  | { readonly kind: 'history'; readonly path: readonly string[]; readonly query: URLSearchParams }
  | { readonly kind: 'other' }
)

const inferenceRoutes = {
  completions: 'completions',
  chat: 'chat_completions',
  responses: 'responses',
  messages: 'messages',
} as const satisfies Record<InferenceApi, RequestRoute>
const listRoutes: ReadonlyMap<string, RequestRoute> = new Map([
  ['POST', 'create'],
  ['GET', 'list'],
])
const manageRoutes: ReadonlyMap<string, RequestRoute> = new Map([
  ['GET', 'get'],
  ['PATCH', 'update'],
  ['DELETE', 'delete'],
])

const targetOf = (request: GatewayRequest): Target => {
  const { method } = request
  const [path = '', query = ''] = request.path.split(/\?(.*)/s)
  const api = inferenceApiOf(path)
  if (api !== undefined)
    return { kind: 'inference', api, route: createsByHeader(request) ? 'create' : inferenceRoutes[api] }
  if (path === '/v1/context')
    return { kind: 'contexts', query: new URLSearchParams(query), route: listRoutes.get(method) ?? 'other' }
  const [, id, fork] = /^\/v1\/context\/([^/]+)(\/fork)?$/.exec(path) ?? []
  const segments = historyPathOf(path)
  if (segments !== undefined)
    return { kind: 'history', path: segments, query: new URLSearchParams(query), route: 'history' }
  if (id === undefined) return { kind: 'other', route: 'other' }
  if (fork !== undefined) return { kind: 'fork', id, route: method === 'POST' ? 'fork' : 'other' }
  return { kind: 'context', id, route: manageRoutes.get(method) ?? 'other' }
}

const createsByHeader = (request: GatewayRequest): boolean =>
  request.header('x-session-ttl').length > 0 && request.header('x-session-id').length === 0

const outcomeLabels = {
  forward: 'forwarded',
  response: 'answered',
  'cached-response': 'answered',
  passthrough: 'passed',
  cancelled: 'abandoned',
  reject: 'rejected',
} as const satisfies Record<Decision['kind'], RequestOutcome>

/** The request's `outcome` in metrics. */
const outcomeLabelOf = (decision: Decision<TurnTicket>): RequestOutcome =>
  decision.kind === 'reject' && decision.error.code === 'internal_error' ? 'failed' : outcomeLabels[decision.kind]
