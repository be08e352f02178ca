import type { Admission, AdmissionWork } from '../admission/admission.ts'
import type { EngineFields, KvPresence } from '../kvcache/kv-connector.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { RoutingInput } from '../routing/router.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { SessionKey, StoredKv, TenantKey } from '../sessions/session-record.ts'
import type { SessionStore, TurnExpiry } from '../sessions/session-store.ts'
import type { ForwardDecision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { type ContextEvents, reportFault } from './context-events.ts'
import type { Pool, Pools } from './pools.ts'
import { decisionMarginMs, loadBudgetMs, prepareKv, RequestCancelledError } from './prepare-kv.ts'
import { defaultPool, type TurnTicket } from './turn-ticket.ts'

/** What the start of a turn uses. */
export interface TurnParts {
  readonly store: SessionStore
  readonly pools: Pools
  readonly events: ContextEvents
  /** Undefined: the number of turns is not limited. */
  readonly admission?: Admission | undefined
}

/** Names an InferenceObjective of the Gateway API inference extension. */
const objectiveHeader = 'x-gateway-inference-objective'

/** A pod for one turn, the destinations of retries, and the input of the choice. */
export interface Route {
  /** The pool of the pod. */
  readonly pool: Pool
  readonly pod: string
  readonly destinations: readonly [string, ...string[]]
  readonly input: RoutingInput
  /** Names the priority of the request. */
  readonly objective: string | undefined
}

/** A turn as far as the choice of its pod goes; without `model` it has no session. */
export interface TurnToRoute {
  /** The session, or what else keeps requests at one pod. */
  readonly key: string | undefined
  readonly model?: string | undefined
  readonly pod?: string | undefined
  readonly kv?: StoredKv | undefined
  /** Of the body seen so far: bytes, and the tokens of its beginning that pods computed lately. Default: unknown. */
  readonly prompt?: { readonly bytes: number; readonly residentTokens: ReadonlyMap<string, number> }
}

/**
 * Chooses the pool of a turn by its model, and its pod in the pool.
 * @throws GatewayError `no_ready_endpoints`, `model_not_found`, `invalid_routing_strategy`
 */
export const routeTurn = (
  parts: Pick<TurnParts, 'pools' | 'events'>,
  request: GatewayRequest,
  turn: TurnToRoute,
): Route => {
  const pool = parts.pools.forModel(turn.model)
  const input = routingInputOf(pool.predictor, request, turn)
  const outcome = pool.router.route(input, request.header('routing-strategy')[0])
  switch (outcome.kind) {
    case 'routed':
      parts.events.routed(outcome.policy, outcome.pod)
      return {
        pool,
        pod: outcome.pod,
        destinations: [outcome.pod, ...outcome.fallbacks],
        input,
        objective: request.header(objectiveHeader)[0],
      }
    case 'no-ready-pod':
      throw new GatewayError('no_ready_endpoints')
    case 'unknown-model':
      throw new GatewayError('model_not_found', { param: 'model' })
    case 'unknown-policy':
      throw new GatewayError('invalid_routing_strategy', {
        param: 'routing-strategy',
        message: `The routing-strategy header must be one of ${outcome.known.join(', ')}.`,
      })
  }
}

const nothing: ReadonlyMap<string, number> = new Map()

/** Bytes of a request body per token of its prompt: English text in JSON. */
export const bytesPerToken = 4
/** A body may hold pictures, which take far more bytes than tokens. */
const maxNewTokens = 32_768

/** Routing input for a turn. The length of its prompt is estimated from the body's, and is at least that of its KV. */
export const routingInputOf = (
  predictor: Pick<TtftPredictor, 'residentTokens'>,
  request: GatewayRequest,
  session: TurnToRoute,
): RoutingInput => {
  const { key, prompt } = session
  const known = prompt?.residentTokens ?? nothing
  const residentTokens = known.size > 0 || key === undefined ? known : predictor.residentTokens(key)
  const present = Math.max(session.kv?.tokens ?? 0, ...residentTokens.values())
  const bodyBytes = Number(request.header('content-length')[0] ?? prompt?.bytes ?? 0)
  const bodyTokens = Math.ceil(bodyBytes / bytesPerToken)
  const estimate = Number.isFinite(bodyTokens) ? bodyTokens : 0
  return {
    affinityKey: key,
    lastPod: session.pod,
    model: session.model,
    promptTokens: Math.min(Math.max(present, estimate), present + maxNewTokens),
    stored: session.kv,
    residentTokens,
    subset: request.pick?.subset,
  }
}

/** A turn of a session, routed and with a lease in the session store. */
export interface SessionTurn {
  readonly turnId: string
  readonly route: Route
  readonly tenant: TenantKey
  readonly session: {
    readonly key: SessionKey
    readonly model: string
    readonly kv?: StoredKv | undefined
    readonly kvStatus?: string | undefined
    readonly createdAtMs?: number | undefined
  }
  readonly expiry: TurnExpiry
  /** An expired session starts again: KV of its earlier life is not used. Default: false. */
  readonly restarted?: boolean
}

/**
 * Waits for admission where turns are limited, brings the session's KV into the pod within the budget, and makes the
 * forward decision, without response headers.
 * @throws GatewayError `rate_limit_exceeded`
 * @throws RequestCancelledError
 */
export const startSessionTurn = (
  parts: TurnParts,
  turn: SessionTurn,
  scope: RequestScope,
): Promise<{ readonly presence: KvPresence; readonly forward: ForwardDecision }> => {
  const { route, session } = turn
  const work = { turnId: turn.turnId, pod: route.pod, model: session.model, objective: route.objective }
  // What a turn left in the pod may be on its way to the store: it is worth as long a wait as what lies there.
  const resident = route.input.residentTokens?.get(route.pod) ?? 0
  const budgetMs = loadBudgetMs(route.pool, session.model, Math.max(session.kv?.tokens ?? 0, resident))
  return whenAdmitted(parts.admission, work, { laterMs: budgetMs, scope }, async () => {
    const { presence, fields, claim, preparedMs } = await prepareKv(parts, turn, { budgetMs, scope })
    const { key, model } = session
    return {
      presence,
      forward: forwardTo(route, fields, {
        turnId: turn.turnId,
        pool: route.pool.name,
        pod: route.pod,
        preparedMs: Math.round(preparedMs),
        session: { key, tenant: turn.tenant, model, expiry: turn.expiry, claim },
      }),
    }
  })
}

/**
 * Forwards a turn without a session: only counted, and isolated from sessions' KV, per tenant or (undefined) for all.
 * @throws GatewayError `rate_limit_exceeded`
 * @throws RequestCancelledError
 */
export const startPlainTurn = (
  parts: TurnParts,
  turn: { readonly turnId: string; readonly route: Route; readonly tenant: TenantKey | undefined },
  scope: RequestScope,
): Promise<ForwardDecision> => {
  const { turnId, route, tenant } = turn
  const work = { turnId, pod: route.pod, model: route.input.model, objective: route.objective }
  return whenAdmitted(parts.admission, work, { laterMs: 0, scope }, async () => {
    if (scope.signal.aborted) throw new RequestCancelledError()
    const { pool, pod, input } = route
    const { model } = input
    pool.pods.turnStarted(pod, turnId)
    if (model !== undefined) pool.predictor.routed({ turnId, pod, model }, input)
    const fields = tenant === undefined ? pool.kv.constants : pool.kv.isolation(tenant)
    return forwardTo(route, fields, { turnId, pool: pool.name, pod, model })
  })
}

/** Releases the lease of a turn that is not forwarded. Never rejects: a lease that stays expires. */
export const abandonTurn = async (
  parts: Pick<TurnParts, 'store' | 'events'>,
  turn: { readonly key: SessionKey; readonly turnId: string },
): Promise<void> => {
  try {
    await parts.store.abandon(turn)
  } catch (error) {
    reportFault(parts.events, 'abandon', error)
  }
}

const forwardTo = (route: Route, fields: EngineFields, ticket: TurnTicket): ForwardDecision => ({
  kind: 'forward',
  destinations: route.destinations,
  path: undefined,
  requestHeaders: poolHeader(route.pool),
  // JSON members without the braces.
  splice: Object.keys(fields).length === 0 ? undefined : JSON.stringify(fields).slice(1, -1),
  expectModel: undefined,
  responseHeaders: {},
  ticket,
})

/** Names the cluster of a pool other than the default one. It means nothing unless Envoy has one for each pool. */
export const poolHeader = ({ name }: Pool): Readonly<Record<string, string>> =>
  name === defaultPool ? {} : { 'x-context-pool': name }

/**
 * Runs `start` when the turn is admitted. The turn holds its resources until its end, or until `start` fails. `laterMs`
 * is how long `start` may take.
 */
const whenAdmitted = async <T>(
  admission: Admission | undefined,
  work: Omit<AdmissionWork, 'kind'>,
  limits: { readonly laterMs: number; readonly scope: RequestScope },
  start: () => Promise<T>,
): Promise<T> => {
  if (admission === undefined) return start()
  const { scope } = limits
  const { maxWaitMs } = admission
  const requested = admission.request({ kind: 'prefill', ...work }, { waitMs: maxWaitMs, client: scope })
  // Envoy takes only the first extension of a decision, so that it covers the load, too.
  if (requested.kind === 'waiting') scope.extendDeadline(maxWaitMs + Math.ceil(limits.laterMs) + decisionMarginMs)
  const settled = requested.kind === 'waiting' ? await requested.settled : requested
  if (settled.kind === 'left') throw new RequestCancelledError()
  if (settled.kind === 'refused') {
    // By then every turn that waits now is admitted or refused.
    const retryAfter = String(Math.max(1, Math.ceil(maxWaitMs / 1000)))
    throw new GatewayError('rate_limit_exceeded', { headers: { 'retry-after': retryAfter } })
  }
  try {
    if (scope.signal.aborted) throw new RequestCancelledError()
    return await start()
  } catch (error) {
    admission.release('prefill', work.turnId)
    throw error
  }
}
