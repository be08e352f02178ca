import { GatewayError } from '../openai/gateway-error.ts'
import { answerConversation, answerConversations } from './answer-conversations.ts'
import type { Conversations, StoredResponses } from './conversations.ts'
import type { HistoryAnswer, HistoryRequest } from './history-request.ts'
import { pageOf } from './item-page.ts'
import { replayEvents } from './replay-events.ts'
import type { ResponseHistory } from './response-history.ts'

/** What clients ask of responses and conversations that were kept. */
export interface HistoryParts {
  readonly history: Pick<ResponseHistory, 'get'>
  readonly responses: StoredResponses
  readonly conversations: Conversations
}

/** Methods of a path of this API; undefined: it has no such path. */
export const methodsOf = ([api, id, part, item, ...rest]: readonly string[]): readonly string[] | undefined => {
  if (id === '' || item === '' || rest.length > 0) return undefined
  if (api === 'responses' && id !== undefined && item === undefined) {
    if (part === undefined) return notIds.has(id) ? undefined : ['DELETE', 'GET']
    return responseParts.get(part)
  }
  if (api !== 'conversations') return undefined
  if (id === undefined) return ['POST']
  if (part === undefined) return ['DELETE', 'GET', 'POST']
  if (part !== 'items') return undefined
  return item === undefined ? ['GET', 'POST'] : ['DELETE', 'GET']
}

/** Paths of OpenAI's API beside those of responses, which the gateway does not have. */
const notIds: ReadonlySet<string> = new Set(['compact', 'input_tokens'])

const responseParts: ReadonlyMap<string, readonly string[]> = new Map([
  ['input_items', ['GET']],
  ['cancel', ['POST']],
])

/**
 * Answers a request whose method is one of {@link methodsOf} its path, from what is kept.
 * @throws GatewayError `response_not_found`, `conversation_not_found`, `conversation_locked`, `conversation_too_large`,
 * `item_not_found`, `invalid_value`, `missing_required_parameter`, `unsupported_parameter`, `tenant_history_limit`
 * @throws StoreUnavailableError
 */
export const answerHistoryRequest = async (parts: HistoryParts, request: HistoryRequest): Promise<HistoryAnswer> => {
  const [api, id = '', part] = request.path
  if (api === 'conversations') {
    const body = await (id === ''
      ? answerConversations(parts.conversations, request)
      : answerConversation(parts.conversations, request, id))
    return { kind: 'json', body }
  }
  if (part === 'cancel')
    throw new GatewayError('unsupported_parameter', {
      param: 'background',
      message: 'Only background responses can be cancelled, and the gateway has none: close the connection instead.',
    })
  return request.method === 'DELETE' ? removeResponse(parts, request, id) : showResponse(parts, request, id)
}

const unknownResponse = (id: string): GatewayError =>
  new GatewayError('response_not_found', { message: `Response with id '${id}' not found.` })

const removeResponse = async (
  { responses }: HistoryParts,
  { tenant, forget }: HistoryRequest,
  id: string,
): Promise<HistoryAnswer> => {
  const outcome = await responses.remove({ tenant, id })
  if (outcome.kind === 'unknown') throw unknownResponse(id)
  const { root, ended, models } = outcome
  // The first model's KV serves whatever still continues the chain.
  await forget({ root, models: ended ? models : models.slice(1) })
  return { kind: 'json', body: { id, object: 'response', deleted: true } }
}

const showResponse = async (
  { history }: HistoryParts,
  { tenant, path, query }: HistoryRequest,
  id: string,
): Promise<HistoryAnswer> => {
  const stored = await history.get({ tenant, id })
  if (stored === undefined) throw unknownResponse(id)
  if (path[2] === 'input_items') return { kind: 'json', body: pageOf(stored.inputItems, query) }
  if (query.get('stream') !== 'true') return { kind: 'text', contentType: 'application/json', text: stored.response }
  if (stored.response.length > maxReplayLength)
    throw new GatewayError('invalid_value', {
      param: 'stream',
      message: 'The response is too large to be replayed as a stream. Get it without stream.',
    })
  const text = replayEvents(JSON.parse(stored.response), startingAfter(query))
  return { kind: 'text', contentType: 'text/event-stream', text }
}

/** Of a response that is replayed as events: to build more takes more than some 10 ms. */
const maxReplayLength = 262_144

const startingAfter = (query: URLSearchParams): number | undefined => {
  const text = query.get('starting_after')
  if (text === null) return undefined
  if (!/^\d{1,9}$/.test(text))
    throw new GatewayError('invalid_value', { param: 'starting_after', message: 'starting_after is a whole number.' })
  return Number(text)
}
