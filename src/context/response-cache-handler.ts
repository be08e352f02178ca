import type { SlicedWork, Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import type { InferenceApi } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { parseJsonObject } from '../openai/parse-json-object.ts'
import { type CacheableRequest, readCacheableRequest, uncountedMembers } from '../responsecache/eligibility.ts'
import type { CachedResponse, ResponseCache } from '../responsecache/response-cache.ts'
import type { BeginCapture, ResponseCapture } from '../responsecache/response-capture.ts'
import { canonicalJson, type ResponseKey, responseKeyOf } from '../responsecache/response-key.ts'
import type {
  Decision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
  ResponseObserver,
} from './context-cache-manager.ts'
import type { Tenants } from './tenant.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** As a request header, asks for the response cache; in the response to an eligible request, `hit` or `miss`. */
const responseCacheHeader = 'x-response-cache'

/** Of a request that is parsed, compared and hashed in one slice, some 1 ms. */
const bytesAtOnce = 65_536

/** An earlier response to the same request, whose body names `model`. */
export interface CacheHit {
  readonly model: string
  readonly response: CachedResponse
}

/** Sends an earlier response, with these headers beside `x-response-cache`. */
export const cachedResponse = (
  { response }: CacheHit,
  headers: Readonly<Record<string, string>> = {},
): Extract<Decision<TurnTicket>, { kind: 'cached-response' }> => ({
  kind: 'cached-response',
  contentType: response.contentType,
  body: response.body,
  headers: { ...headers, [responseCacheHeader]: 'hit' },
})

export interface ResponseCacheParts {
  readonly cache: ResponseCache
  readonly beginCapture: BeginCapture
  /** Longer requests are not cached, and their bodies not read. */
  readonly maxEntryBytes: number
  /** The models whose requests may be answered from the cache. */
  readonly models: readonly string[]
  /** Drops a tenant's answers, and those that are being collected. Returns how many were cached. */
  readonly forget: (tenant: string) => number
  /** Result of an eligible request. */
  readonly onLookup: (result: 'hit' | 'miss') => void
}

/**
 * Answers inference requests from the response cache, and fills it with the engines' responses. `decide` decides as
 * without a response cache, and may send `cached`. Undefined: by its headers the request is not eligible.
 *
 * A request is eligible if it asks for the cache (`x-response-cache: on`, which Envoy's routes require too), Envoy
 * sends its body, of at most `maxEntryBytes`, and `Cache-Control` allows it (no `no-store`, `no-cache`). One that
 * creates a session is never eligible: it has to leave KV in a pod. Nor are Anthropic's messages. Two equal requests at a
 * time are both computed.
 */
export const createResponseCacheHandler = (
  parts: ResponseCacheParts & { readonly tenants: Tenants; readonly slices: Slices },
  settings: JsonLimits,
) => {
  const { maxEntryBytes: maxBytes } = parts
  // Not all settings, which are read as they are now: each costs a call.
  const limits = (): JsonLimits & { readonly maxBytes: number } => {
    const { maxJsonDepth, maxJsonKeys } = settings
    return { maxJsonDepth, maxJsonKeys, maxBytes }
  }
  const models: ReadonlySet<string> = new Set(parts.models)

  /** Undefined: not eligible. What is wrong with the request is reported by the handler that decides on it. */
  function* readEligible(
    request: GatewayRequest,
    api: Exclude<InferenceApi, 'messages'>,
    body: Buffer,
  ): SlicedWork<EligibleRequest | undefined> {
    const parsed = yield* parseJsonObject(body, limits())
    const cacheable = readCacheableRequest(parsed)
    if (cacheable === undefined || !models.has(cacheable.model)) return undefined
    const tenant = parts.tenants.tenantOf(request)
    if (body.length > bytesAtOnce) yield
    const canonicalBody = canonicalJson(parsed, { without: uncountedMembers(api) })
    if (canonicalBody === undefined) return undefined
    return { ...cacheable, key: responseKeyOf({ ...cacheable, canonicalBody, tenant, path: request.path }) }
  }

  const eligibleOrNone = async (work: SlicedWork<EligibleRequest | undefined>, signal: AbortSignal) => {
    try {
      return await parts.slices.run(work, signal)
    } catch (error) {
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }

  const withCapture = (eligible: EligibleRequest, decision: Decision<TurnTicket>): Decision<TurnTicket> => {
    switch (decision.kind) {
      case 'cached-response':
        parts.onLookup('hit')
        return decision
      case 'passthrough':
      case 'forward':
        parts.onLookup('miss')
        return { ...decision, observer: observe(parts.beginCapture(eligible)) }
      case 'response':
      case 'reject':
      case 'cancelled':
        return decision
    }
  }

  return (
    request: GatewayRequest,
    api: InferenceApi,
    decide: (scope: RequestScope, cached?: CacheHit) => Promise<HeadersDecision<TurnTicket>>,
  ): HeadersDecision<TurnTicket> | undefined => {
    if (api === 'messages' || !isEligible(request, maxBytes)) return undefined
    return {
      kind: 'need-body',
      decide: async (body, scope) => {
        const eligible = await eligibleOrNone(readEligible(request, api, body), scope.signal)
        const response = eligible && parts.cache.lookUp(eligible.key)
        const first = await decide(scope, response && { model: eligible.model, response })
        const decision = first.kind === 'need-body' ? await first.decide(body, scope) : first
        return eligible === undefined ? decision : withCapture(eligible, decision)
      },
    }
  }
}

interface EligibleRequest extends CacheableRequest {
  readonly key: ResponseKey
}

const isEligible = (request: GatewayRequest, maxBytes: number): boolean =>
  request.header(responseCacheHeader).join() === 'on' &&
  request.bodyReadable &&
  !request.endOfStream &&
  Number(request.header('content-length')[0] ?? 0) <= maxBytes &&
  (request.header('x-session-id').length > 0 || request.header('x-session-ttl').length === 0) &&
  request.header('content-encoding').every((value) => value === 'identity') &&
  !/(?:^|[,\s])no-(?:store|cache)(?:$|[=,;\s])/i.test(request.header('cache-control').join())

const missHeaders = { [responseCacheHeader]: 'miss' } as const

/** Without room for another capture the response is only marked. */
const observe = (capture: ResponseCapture | undefined): ResponseObserver =>
  capture === undefined
    ? { setHeaders: missHeaders, head: () => 'enough', chunk: () => 'enough', end: () => {} }
    : { ...capture, setHeaders: missHeaders }
