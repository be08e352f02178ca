import type { SlicedWork, Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { blankChangingLine } from '../openai/changing-line.ts'
import type { InferenceApi } from '../openai/create-body.ts'
import type { Decision, GatewayRequest, HeadersDecision, RequestScope } from './context-cache-manager.ts'
import { bodyNamePrefix, type ConversationName, conversationNameOf } from './conversation-name.ts'
import { type NamedBody, promptFromHeaders, readNamedBody } from './named-prompt.ts'
import type { CacheHit } from './response-cache-handler.ts'
import type { TurnTicket } from './turn-ticket.ts'
import type { NamedTurn } from './use-named-session.ts'

/** Decides as if the request had no session. `otherName` only keeps requests together. */
export type DecideUnnamed = (otherName: string | undefined, scope: RequestScope) => Promise<HeadersDecision<TurnTicket>>

/**
 * Finds the name that a client gave its conversation, and what else its session needs: in headers, where Envoy's Lua
 * filter has read the body, else in the body itself, where Envoy sends it.
 */
export const createNamedRequests = (
  parts: {
    readonly slices: Slices
    readonly use: (turn: NamedTurn) => Promise<Decision<TurnTicket> | undefined>
  },
  settings: JsonLimits & { readonly implicit: { readonly names: readonly string[] } },
) => {
  const useOrElse = async (turn: NamedTurn, unnamed: DecideUnnamed): Promise<HeadersDecision<TurnTicket>> =>
    (await parts.use(turn)) ?? unnamed(turn.name.name, turn.scope)

  function* read(api: InferenceApi, body: Buffer, isForwarded: boolean): SlicedWork<NamedBody | undefined> {
    if (isForwarded && api === 'messages') yield* blankChangingLine(body)
    return yield* readNamedBody(body, { api, kinds: settings.implicit.names, limits: settings })
  }

  const readBody = (
    request: GatewayRequest,
    api: InferenceApi,
    cached: CacheHit | undefined,
    unnamed: DecideUnnamed,
  ): HeadersDecision<TurnTicket> => ({
    kind: 'need-body',
    // No function here keeps a body that is not forwarded: it is free as soon as it is read.
    decide: (body, scope) => {
      const forwarded = request.pick === undefined ? undefined : body
      return parts.slices.run(read(api, body, forwarded !== undefined), scope.signal).then(async (told) => {
        scope.releaseBody()
        const name = conversationNameOf(request, settings.implicit.names, told?.members)
        const decided =
          name === undefined || told === undefined
            ? await unnamed(name?.name, scope)
            : await useOrElse({ request, name, prompt: told.prompt, cached, scope }, unnamed)
        return decided.kind === 'need-body' ? decided.decide(forwarded ?? noBody, scope) : decided
      })
    },
  })

  return async (
    request: GatewayRequest,
    given: { readonly api: InferenceApi; readonly cached: CacheHit | undefined; readonly scope: RequestScope },
    unnamed: DecideUnnamed,
  ): Promise<HeadersDecision<TurnTicket>> => {
    const { api, cached, scope } = given
    const { names } = settings.implicit
    const name: ConversationName | undefined = names.length === 0 ? undefined : conversationNameOf(request, names)
    const prompt = name !== undefined && request.pick === undefined ? promptFromHeaders(request) : undefined
    if (name !== undefined && prompt !== undefined) return useOrElse({ request, name, prompt, cached, scope }, unnamed)
    const canRead = request.bodyReadable && !request.endOfStream
    return canRead && (name !== undefined || names.some((kind) => kind.startsWith(bodyNamePrefix)))
      ? readBody(request, api, cached, unnamed)
      : unnamed(name?.name, scope)
  }
}

const noBody = Buffer.alloc(0)
