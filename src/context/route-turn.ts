import { inferenceApiOf } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { RouteOutcome, RoutingInput } from '../routing/router.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { StoredKv } from '../sessions/session-record.ts'
import type { GatewayRequest } from './context-cache-manager.ts'
import type { Pool, Pools } from './pools.ts'

/** Names an InferenceObjective of the Gateway API inference extension. */
const objectiveHeader = 'x-gateway-inference-objective'

/** A pod for one turn, the destinations of retries, and the input of the choice. */
export interface Route {
  /** The pool of the pod. */
  readonly pool: Pool
  readonly pod: string
  readonly destinations: readonly [string, ...string[]]
  /** Name of the policy that chose. */
  readonly policy: string
  readonly input: RoutingInput
  /** Names the priority of the request. */
  readonly objective: string | undefined
  /** The request goes to `/v1/messages`. */
  readonly isMessages: boolean
  /** Chooses again, among these pods; undefined: none of them serves the turn now. */
  among(mayChoose: (pod: string) => boolean): Route | undefined
}

/** A turn as far as the choice of its pod goes; without `model` it has no session. */
export interface TurnToRoute {
  /** The session, or what else keeps requests at one pod. */
  readonly key: string | undefined
  /** The key is of another system. Default: false. */
  readonly isForeign?: boolean
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
export const routeTurn = ({ pools }: { readonly pools: Pools }, request: GatewayRequest, turn: TurnToRoute): Route => {
  const pool = pools.forModel(turn.model)
  const input = routingInputOf(pool.predictor, request, turn)
  const strategy = request.header('routing-strategy')[0]
  const objective = request.header(objectiveHeader)[0]
  const isMessages = inferenceApiOf(request.path) === 'messages'
  const routeTo = ({ policy, pod, fallbacks }: Extract<RouteOutcome, { readonly kind: 'routed' }>): Route => {
    return { pool, pod, destinations: [pod, ...fallbacks], policy, input, objective, isMessages, among }
  }
  const among = (mayChoose: (pod: string) => boolean): Route | undefined => {
    const outcome = pool.router.route(input, strategy, mayChoose)
    return outcome.kind === 'routed' ? routeTo(outcome) : undefined
  }
  const outcome = pool.router.route(input, strategy)
  switch (outcome.kind) {
    case 'routed':
      return routeTo(outcome)
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
    isForeign: session.isForeign,
    lastPod: session.pod,
    model: session.model,
    promptTokens: Math.min(Math.max(present, estimate), present + maxNewTokens),
    stored: session.kv,
    residentTokens,
    subset: request.pick?.subset,
  }
}
