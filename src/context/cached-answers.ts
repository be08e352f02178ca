import { GatewayError } from '../openai/gateway-error.ts'
import type { InferenceApi } from '../openai/inference-api.ts'
import { type JsonLimits, parseJsonObject } from '../openai/parse-json-object.ts'
import type { AnswerCapture, BeginCapture } from '../responsecache/answer-capture.ts'
import { canonicalJson } from '../responsecache/canonical-json.ts'
import { readCacheableRequest, uncountedMembers } from '../responsecache/eligibility.ts'
import type { ResponseCache } from '../responsecache/response-cache.ts'
import { type AnswerForm, type ResponseKey, responseKeyOf } from '../responsecache/response-key.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type {
  Decision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
  ResponseObserver,
} from './context-cache-manager.ts'
import { type CachedAnswer, responseCacheHeader } from './replay-answer.ts'
import type { Tenants } from './tenant.ts'

/** Decides on a request as if there were no response cache; with an earlier answer, which may be sent again. */
export type DecideWithout = (scope: RequestScope, cached?: CachedAnswer) => Promise<HeadersDecision>

/** Answers inference requests from the response cache, and fills it with what engines answer. */
export interface CachedAnswers {
  /** Reads the body and looks the request up. Undefined: its headers tell already that the cache has nothing to do with it. */
  onHeaders(request: GatewayRequest, api: InferenceApi, decide: DecideWithout): HeadersDecision | undefined
}

export interface CachedAnswersParts {
  readonly cache: ResponseCache
  readonly beginCapture: BeginCapture
  readonly tenants: Tenants
  /** A request that could have been answered from the cache was, or was computed. */
  readonly onLookup: (result: 'hit' | 'miss') => void
}

export interface CachedAnswersSettings extends JsonLimits {
  /** The models that may be answered from the cache. */
  readonly models: readonly string[]
}

/**
 * Requests take part that ask for it (`x-response-cache: on`, which Envoy's routes require too), whose body Envoy hands over, and that do not
 * forbid it (`Cache-Control: no-store`, `no-cache`). A request that creates a session never does: it has to leave KV in a pod.
 * Two equal requests at a time are both computed.
 */
export const createCachedAnswers = (parts: CachedAnswersParts, settings: CachedAnswersSettings): CachedAnswers => {
  const models: ReadonlySet<string> = new Set(settings.models)

  /** Undefined: this request is none for the cache. What is wrong with it is told by whoever else reads it. */
  const readQuestion = (request: GatewayRequest, api: InferenceApi, body: Buffer): Question | undefined => {
    const parsed = valueOrRefusal(() => parseJsonObject(body, settings))
    const cacheable = parsed === undefined ? undefined : readCacheableRequest(parsed)
    if (cacheable === undefined || !models.has(cacheable.model)) return undefined
    const tenant = valueOrRefusal(() => parts.tenants.tenantOf(request))
    const canonicalBody = canonicalJson(body.toString(), { without: uncountedMembers(api) })
    if (tenant === undefined || canonicalBody === undefined) return undefined
    return { ...cacheable, key: keyOf(request, tenant, { ...cacheable, canonicalBody }) }
  }

  const answered = (question: Question, decision: Decision): Decision => {
    switch (decision.kind) {
      case 'replay':
        parts.onLookup('hit')
        return decision
      case 'passthrough':
      case 'forward':
        parts.onLookup('miss')
        return { ...decision, observer: observe(parts.beginCapture(question)) }
      case 'answer':
      case 'reject':
        return decision
    }
  }

  return {
    onHeaders: (request, api, decide) => {
      if (!takesPart(request)) return undefined
      return {
        kind: 'need-body',
        decide: async (body, scope) => {
          const question = readQuestion(request, api, body)
          const response = question === undefined ? undefined : parts.cache.lookUp(question.key)
          const cached =
            question === undefined || response === undefined ? undefined : { model: question.model, response }
          const first = await decide(scope, cached)
          const decision = first.kind === 'need-body' ? await first.decide(body, scope) : first
          return question === undefined ? decision : answered(question, decision)
        },
      }
    },
  }
}

interface Question {
  readonly model: string
  readonly form: AnswerForm
  readonly key: ResponseKey
}

const keyOf = (
  request: GatewayRequest,
  tenant: TenantKey,
  question: { readonly model: string; readonly form: AnswerForm; readonly canonicalBody: string },
): ResponseKey => responseKeyOf({ ...question, tenant, path: request.path })

const takesPart = (request: GatewayRequest): boolean =>
  request.header(responseCacheHeader).join() === 'on' &&
  request.bodyReadable &&
  !request.endOfStream &&
  !createsSession(request) &&
  isPlain(request) &&
  !forbidsCache.test(request.header('cache-control').join())

const createsSession = (request: GatewayRequest): boolean =>
  request.header('x-session-id').length === 0 && request.header('x-session-ttl').length > 0

const isPlain = (request: GatewayRequest): boolean =>
  request.header('content-encoding').every((value) => value === 'identity')

const forbidsCache = /(?:^|[,\s])no-(?:store|cache)(?:$|[=,;\s])/i

const missHeaders = { [responseCacheHeader]: 'miss' } as const

/** Without room for another capture the answer is only marked. */
const observe = (capture: AnswerCapture | undefined): ResponseObserver =>
  capture === undefined
    ? { setHeaders: missHeaders, head: () => 'enough', chunk: () => 'enough', end: () => {} }
    : { ...capture, setHeaders: missHeaders }

const valueOrRefusal = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}
