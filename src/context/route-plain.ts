import { createPrefixIndex, maxPrefixBytes } from '../routing/prefix-index.ts'
import type { Decision, GatewayRequest, HeadersDecision, RequestScope } from './context-cache-manager.ts'
import { checkSpliceable, namedModel, turnIdFor } from './request-headers.ts'
import { bytesPerToken, routeTurn } from './route-turn.ts'
import { foreignKeyOf } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import { startPlainTurn } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** Blocks of prompts whose pods are remembered, some 150 bytes each. */
const maxPrefixBlocks = 100_000

/**
 * Requests that are no turn of a session, where the gateway is the endpoint picker. They are routed by the model and by
 * the beginning of the prompt, of which a pod that computed it lately has the KV; where the engine uses no KV for such
 * requests, by the model alone. All throw GatewayError as {@link routeTurn} does.
 */
export const createPlainRequests = (parts: TurnParts) => {
  const prefixes = createPrefixIndex({ maxBlocks: maxPrefixBlocks })
  // A client that sends half of its body would keep them from others.
  const { holdsResources } = parts.admission

  const start = async (
    request: GatewayRequest,
    { key, body }: { readonly key: string | undefined; readonly body: Buffer },
    scope: RequestScope,
  ) => {
    const model = namedModel(request, body)
    const usesNoKv = hasConstants(parts.pools.forModel(model).kv)
    if (usesNoKv) checkSpliceable(request)
    const blocks = usesNoKv || model === undefined ? [] : prefixes.blocksOf(model, body)
    const residentTokens = new Map(
      [...prefixes.seen(blocks)].map(([pod, bytes]) => [pod, Math.floor(bytes / bytesPerToken)]),
    )
    const prompt = { bytes: body.length, residentTokens }
    const route = routeTurn(parts, request, { key, isForeign: key !== undefined, model, prompt })
    const forward = await startPlainTurn(parts, { turnId: turnIdFor(request), route, tenant: undefined }, scope)
    prefixes.add(blocks, route.pod)
    return forward
  }

  return {
    /** A request whose body takes the gateway's members. `otherId`: an id of another system. */
    generate: async (
      request: GatewayRequest,
      otherId: string | undefined,
      scope: RequestScope,
    ): Promise<HeadersDecision<TurnTicket>> => {
      const key = foreignKeyOf(otherId)
      if (request.endOfStream) return { ...(await start(request, { key, body: noBody }, scope)), splice: undefined }
      const decide = (body: Buffer, bodyScope: RequestScope) => start(request, { key, body }, bodyScope)
      return { kind: 'need-body', ...(holdsResources ? {} : { prefixBytes: maxPrefixBytes }), decide }
    },
    /** A request that runs a model without the members. Undefined: engines would start it from KV of a session. */
    generateOtherwise: async (
      request: GatewayRequest,
      scope: RequestScope,
    ): Promise<HeadersDecision<TurnTicket> | undefined> => {
      if (hasConstants(parts.pools.forModel(namedModel(request)).kv)) return undefined
      const decide = (_body: Buffer, by: RequestScope) => start(request, { key: undefined, body: noBody }, by)
      return holdsResources && !request.endOfStream ? { kind: 'need-body', decide } : decide(noBody, scope)
    },
    /** A request that uses no KV of others. */
    read: (request: GatewayRequest): Decision<TurnTicket> => {
      const { destinations, policy, pod } = routeTurn(parts, request, { key: undefined, model: namedModel(request) })
      parts.events.routed(policy, pod)
      return { kind: 'passthrough', destinations }
    },
  }
}

const noBody = Buffer.alloc(0)

const hasConstants = ({ constants }: { readonly constants: object }): boolean => Object.keys(constants).length > 0
