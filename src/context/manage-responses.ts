import type { Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { parseJsonObject } from '../openai/parse-json-object.ts'
import { answerHistoryRequest, type HistoryParts, methodsOf } from '../responses/answer-requests.ts'
import type { HistoryAnswer, HistoryRequest } from '../responses/history-request.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import { StoreUnavailableError } from '../sessions/session-store.ts'
import type { Decision, GatewayRequest, HeadersDecision } from './context-cache-manager.ts'
import type { ContextEvents } from './context-events.ts'
import type { ForgetChain } from './forget-chain.ts'
import { checkJsonBody, parseTtlHeader, type TtlBounds } from './request-headers.ts'
import type { Tenants } from './tenant.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** Of a conversation's items. To parse more takes more than some 10 ms. */
const maxBodyBytes = 4_194_304

export interface ManageResponsesSettings extends TtlBounds, JsonLimits {
  readonly defaultTtlSeconds: number
}

/** Segments of a path of responses or conversations that no engine answers, not decoded: ids need no encoding. */
export const historyPathOf = (path: string): readonly string[] | undefined => {
  const segments = /^\/v1\/(responses\/.+|conversations(?:\/.+)?)$/.exec(path)?.[1]?.split('/')
  return segments !== undefined && methodsOf(segments) !== undefined ? segments : undefined
}

/**
 * Handles `/v1/responses/{id}` and `/v1/conversations` with all below them, by {@link historyPathOf} the path.
 * What it returns throws GatewayError.
 */
export const createManageResponses = (
  parts: HistoryParts & {
    readonly tenants: Tenants
    readonly events: Pick<ContextEvents, 'storeFault'>
    readonly slices: Slices
    readonly forgetChain: ForgetChain
  },
  settings: ManageResponsesSettings,
) => {
  const answer = async (
    request: GatewayRequest,
    asked: { readonly path: readonly string[]; readonly query: URLSearchParams; readonly tenants: Owners },
    body: ReadonlyMap<string, unknown>,
  ): Promise<Decision<TurnTicket>> => {
    const { path, query } = asked
    const ttlSeconds = parseTtlHeader(request, settings) ?? settings.defaultTtlSeconds
    const [tenant, former] = asked.tenants
    const forget: HistoryRequest['forget'] = (chain) => parts.forgetChain(asked.tenants, chain)
    const as = (owner: TenantKey) =>
      answerHistoryRequest(parts, { method: request.method, path, query, tenant: owner, body, ttlSeconds, forget })
    try {
      return decisionOf(await (former === undefined ? as(tenant) : as(tenant).catch(orAs(() => as(former)))))
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      parts.events.storeFault('responses', error)
      throw new GatewayError('session_store_unavailable', { cause: error })
    }
  }

  return async (
    request: GatewayRequest,
    path: readonly string[],
    query: URLSearchParams,
  ): Promise<HeadersDecision<TurnTicket>> => {
    const allowed = methodsOf(path) ?? []
    if (!allowed.includes(request.method))
      throw new GatewayError('method_not_allowed', { headers: { allow: allowed.join(', ') } })
    const asked = {
      path,
      query,
      tenants: [parts.tenants.tenantOf(request), parts.tenants.formerTenantOf(request)] as const,
    }
    if (request.method !== 'POST' || request.endOfStream) return answer(request, asked, new Map())
    checkJsonBody(request)
    return {
      kind: 'need-body',
      decide: async (body, scope) => {
        const limits = { ...settings, maxBytes: maxBodyBytes }
        // OpenAI's SDKs send no byte where there is nothing to say.
        const members =
          body.length === 0 ? new Map() : await parts.slices.run(parseJsonObject(body, limits), scope.signal)
        return answer(request, asked, members)
      },
    }
  }
}

/** The tenant of the request, and while secrets are rotated, the same one by the other secret. */
type Owners = readonly [TenantKey, TenantKey | undefined]

/** What the tenant does not have, the one by the other secret may. */
const orAs =
  (retry: () => Promise<HistoryAnswer>) =>
  (error: unknown): Promise<HistoryAnswer> => {
    const isUnknown =
      error instanceof GatewayError && ['response_not_found', 'conversation_not_found'].includes(error.code)
    if (!isUnknown) throw error
    return retry()
  }

const decisionOf = (answer: HistoryAnswer): Decision<TurnTicket> =>
  answer.kind === 'json'
    ? { kind: 'response', status: 200, body: answer.body, headers: {} }
    : { kind: 'cached-response', contentType: answer.contentType, body: Buffer.from(answer.text), headers: {} }
