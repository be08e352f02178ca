import { randomBytes } from 'node:crypto'
import type { Slices } from '../async/slices.ts'
import { type InferenceApi, inferencePaths } from '../openai/create-body.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { toChatRequest } from '../openai/responses-to-chat/chat-request.ts'
import type { AnswerRewriter, HeldBytes } from '../responses/answer-rewriter.ts'
import { createAnswerTranslator, inTurn } from '../responses/answer-translator.ts'
import type { Decision } from './context-cache-manager.ts'
import type { Pools } from './pools.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** A turn of /v1/responses in the API of its engine. */
export interface EngineTurn {
  readonly api: InferenceApi
  readonly body: Buffer
  /** A decision on this turn as one on the client's. `rewriter`: of its answer in the client's API. Default: none. */
  readonly decided: (decision: ForwardedDecision, rewriter?: AnswerRewriter) => ForwardedDecision
}

/** A decision by which a request goes to an engine. */
export type ForwardedDecision = Extract<Decision<TurnTicket>, { readonly kind: 'forward' | 'passthrough' }>

/** 144 bits: whoever has the id of a response has all of its history. */
const keyBytes = 18

/**
 * Translates turns to /v1/chat/completions where the engines of their model have no /v1/responses. Rejects with
 * GatewayError as `toChatRequest`, and `rate_limit_exceeded`.
 */
export const createEngineTurns = (parts: {
  readonly pools: Pick<Pools, 'forModel'>
  readonly memory: HeldBytes
  readonly slices: Slices
}) => {
  const { pools, memory, slices } = parts

  const overChat = async (given: Buffer, signal: AbortSignal): Promise<EngineTurn> => {
    const { body, echo } = await slices.run(toChatRequest(given), signal)
    if (memory.heldBytes > memory.maxBytes) throw new GatewayError('rate_limit_exceeded')
    return {
      api: 'chat',
      body,
      decided: (decision, rewriter) => {
        const key = randomBytes(keyBytes).toString('base64url')
        const start = { key, createdAt: Math.floor(Date.now() / 1000), echo }
        const translator = createAnswerTranslator({ ...start, memory, slices })
        return {
          ...decision,
          path: inferencePaths.chat,
          body,
          // What is compressed cannot be read.
          requestHeaders: { ...decision.requestHeaders, 'accept-encoding': 'identity' },
          rewriter: rewriter === undefined ? translator : inTurn(translator, rewriter),
        }
      },
    }
  }

  return {
    translates: (model: string | undefined): boolean => pools.forModel(model).responsesApi === 'chat',
    turnOf: async (model: string | undefined, body: Buffer, signal: AbortSignal): Promise<EngineTurn> =>
      pools.forModel(model).responsesApi === 'chat'
        ? overChat(body, signal)
        : {
            api: 'responses',
            body,
            decided: (decision, rewriter) => ({ ...decision, body, ...(rewriter === undefined ? {} : { rewriter }) }),
          },
  }
}
