import type { Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import type { InferenceApi } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { Decision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { conversationNameOf } from './conversation-name.ts'
import { readNamedBody } from './named-prompt.ts'
import type { DecideUnnamed } from './named-requests.ts'
import { containsSessionId, isSessionId } from './session-id.ts'
import type { TurnTicket } from './turn-ticket.ts'
import type { NamedTurn } from './use-named-session.ts'

/** Decides on a turn of a chain of responses, whose body has the history in it. */
export type DecideChain = (
  request: GatewayRequest,
  turn: {
    readonly body: Buffer
    readonly api: InferenceApi
    /** The client's, without the history. Its members but for the prompt are those of `body`. */
    readonly asked: Buffer
    readonly root: string
    /** The chain has a turn already. */
    readonly isContinued: boolean
  },
  scope: RequestScope,
) => Promise<Decision<TurnTicket>>

export interface DecideChainSettings extends JsonLimits {
  readonly implicit: { readonly names: readonly string[] }
}

/** Kind of the name of a chain's session. */
export const chainKind = 'response'

/**
 * Finds the session of a chain: the one whose id the request has, else that of the client's own name for its conversation,
 * else the implicit one that the chain's root names. Where one response is continued twice, the second turn is a further
 * prompt under the same name, which starts from the KV of the prompt before.
 */
export const createDecideChain =
  (
    parts: {
      readonly slices: Slices
      readonly useSession: (turn: {
        readonly request: GatewayRequest
        readonly id: string
        readonly cached: undefined
        readonly body: Buffer
        readonly scope: RequestScope
      }) => Promise<Decision<TurnTicket>>
      readonly useNamed: (turn: NamedTurn) => Promise<Decision<TurnTicket> | undefined>
      readonly decideUnnamed: (request: GatewayRequest) => DecideUnnamed
    },
    settings: DecideChainSettings,
  ): DecideChain =>
  async (request, { body, api, asked, root, isContinued }, scope) => {
    const ids = request.header('x-session-id')
    const [id] = ids
    if (id !== undefined && ids.length === 1 && isSessionId(id))
      return parts.useSession({ request, id, cached: undefined, body, scope })
    if (containsSessionId(ids)) throw new GatewayError('invalid_session_id', { param: 'x-session-id' })
    const { names: kinds } = settings.implicit
    const reading = readNamedBody(asked, { api, kinds, limits: settings, promptBody: body })
    const told = await parts.slices.run(reading, scope.signal)
    const own = conversationNameOf(request, kinds, told?.members)
    const name = own ?? { kind: chainKind, name: root }
    const prompt = told?.prompt
    const decision =
      prompt && (await parts.useNamed({ request, name, prompt, forksBranch: isContinued, cached: undefined, scope }))
    if (decision !== undefined) return decision
    const unnamed = await parts.decideUnnamed(request)(own?.name, scope)
    return unnamed.kind === 'need-body' ? unnamed.decide(body, scope) : unnamed
  }
