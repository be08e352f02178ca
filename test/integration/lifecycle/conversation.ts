import type OpenAI from 'openai'
import type { Stream } from 'openai/streaming'
import { model } from '../support/client.ts'

/** What was said, from the beginning. */
export type Conversation = readonly { readonly role: 'user' | 'assistant'; readonly text: string }[]

/** One answered turn, whatever API carried it. */
export interface Turn {
  readonly text: string
  /** Undefined: the answer carried none. */
  readonly usage: { readonly prompt: number; readonly output: number; readonly cached: number } | undefined
  readonly headers: Headers
}

export interface TurnRequest {
  readonly conversation: Conversation
  readonly streamed: boolean
  readonly headers?: Record<string, string>
  /** A stream ends with its token counts. Default: true. */
  readonly includeUsage?: boolean
}

/** One of OpenAI's APIs, through the SDK as it is. */
export interface Api {
  readonly name: string
  readonly path: string
  /** By the SDK's own method. */
  send(client: OpenAI, request: TurnRequest): Promise<Turn>
  /** By `POST /v1/context`, with the same body. */
  create(client: OpenAI, request: TurnRequest): Promise<Turn>
}

type CompletionBody = OpenAI.CompletionCreateParams
type ChatBody = OpenAI.ChatCompletionCreateParams
type ResponseBody = OpenAI.Responses.ResponseCreateParams
type Params<Body> = Omit<Body, 'stream'>

const outputTokens = 8

const usageOption = ({ streamed, includeUsage = true }: TurnRequest) =>
  streamed && includeUsage ? { stream_options: { include_usage: true } } : {}

/** A completion's prompt is the conversation as one text, which an answer continues. */
const completionBody = (request: TurnRequest): Params<CompletionBody> => ({
  model,
  prompt: request.conversation.map(({ text }) => text).join('\n'),
  max_tokens: outputTokens,
  ...usageOption(request),
})

const chatBody = (request: TurnRequest): Params<ChatBody> => ({
  model,
  messages: request.conversation.map(({ role, text }) => ({ role, content: text })),
  max_tokens: outputTokens,
  ...usageOption(request),
})

/** An answer comes back in the form in which it was given: engines refuse shorter ones. */
const responseItem = ({ role, text }: Conversation[number], index: number): OpenAI.Responses.ResponseInputItem =>
  role === 'user'
    ? { role, content: text }
    : {
        type: 'message',
        id: `msg_${index}`,
        role,
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [] }],
      }

const responseBody = ({ conversation }: TurnRequest): Params<ResponseBody> => ({
  model,
  input: conversation.map(responseItem),
  max_output_tokens: outputTokens,
})

type Usage = OpenAI.CompletionUsage | null | undefined
type ResponseUsage = OpenAI.Responses.ResponseUsage | undefined

const tokensOf = (usage: Usage): Turn['usage'] =>
  usage === null || usage === undefined
    ? undefined
    : {
        prompt: usage.prompt_tokens,
        output: usage.completion_tokens,
        cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
      }

const responseTokensOf = (usage: ResponseUsage): Turn['usage'] =>
  usage && { prompt: usage.input_tokens, output: usage.output_tokens, cached: usage.input_tokens_details.cached_tokens }

/** What both kinds of answer have in common once they are read: their text and their counts. */
type Read = Omit<Turn, 'headers'>

const readCompletion = (answer: OpenAI.Completion): Read => ({
  text: answer.choices[0]?.text ?? '',
  usage: tokensOf(answer.usage),
})

const readCompletionStream = async (stream: Stream<OpenAI.Completion>): Promise<Read> => {
  let read: Read = { text: '', usage: undefined }
  for await (const chunk of stream) {
    read = { text: read.text + (chunk.choices[0]?.text ?? ''), usage: tokensOf(chunk.usage) ?? read.usage }
  }
  return read
}

const readChat = (answer: OpenAI.ChatCompletion): Read => ({
  text: answer.choices[0]?.message.content ?? '',
  usage: tokensOf(answer.usage),
})

const readChatStream = async (stream: Stream<OpenAI.ChatCompletionChunk>): Promise<Read> => {
  let read: Read = { text: '', usage: undefined }
  for await (const chunk of stream) {
    read = { text: read.text + (chunk.choices[0]?.delta.content ?? ''), usage: tokensOf(chunk.usage) ?? read.usage }
  }
  return read
}

/** `output_text` is added by the SDK's own method alone. */
const readResponse = (answer: OpenAI.Responses.Response): Read => ({
  text: answer.output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join(''),
  usage: responseTokensOf(answer.usage),
})

const readResponseStream = async (stream: Stream<OpenAI.Responses.ResponseStreamEvent>): Promise<Read> => {
  let read: Read = { text: '', usage: undefined }
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') read = { ...read, text: read.text + event.delta }
    if (event.type === 'response.completed') read = { ...read, usage: responseTokensOf(event.response.usage) }
  }
  return read
}

interface Answered<T> {
  withResponse(): Promise<{ readonly data: T; readonly response: Response }>
}

const finish = async <T>(answered: Answered<T>, read: (data: T) => Read | Promise<Read>): Promise<Turn> => {
  const { data, response } = await answered.withResponse()
  return { ...(await read(data)), headers: response.headers }
}

const postContext = <Whole, Chunk>(
  client: OpenAI,
  turn: { readonly request: TurnRequest; readonly body: object },
  readers: { readonly whole: (answer: Whole) => Read; readonly stream: (stream: Stream<Chunk>) => Promise<Read> },
): Promise<Turn> => {
  const options = { body: { ...turn.body, stream: turn.request.streamed }, headers: turn.request.headers ?? {} }
  return turn.request.streamed
    ? finish(client.post<Stream<Chunk>>('/context', { ...options, stream: true }), readers.stream)
    : finish(client.post<Whole>('/context', options), readers.whole)
}

const completions: Api = {
  name: 'completions',
  path: '/v1/completions',
  send: (client, request) => {
    const body = completionBody(request)
    const options = { headers: request.headers ?? {} }
    return request.streamed
      ? finish(client.completions.create({ ...body, stream: true }, options), readCompletionStream)
      : finish(client.completions.create({ ...body, stream: false }, options), readCompletion)
  },
  create: (client, request) =>
    postContext(
      client,
      { request, body: completionBody(request) },
      { whole: readCompletion, stream: readCompletionStream },
    ),
}

const chat: Api = {
  name: 'chat completions',
  path: '/v1/chat/completions',
  send: (client, request) => {
    const body = chatBody(request)
    const options = { headers: request.headers ?? {} }
    return request.streamed
      ? finish(client.chat.completions.create({ ...body, stream: true }, options), readChatStream)
      : finish(client.chat.completions.create({ ...body, stream: false }, options), readChat)
  },
  create: (client, request) =>
    postContext(client, { request, body: chatBody(request) }, { whole: readChat, stream: readChatStream }),
}

const responses: Api = {
  name: 'responses',
  path: '/v1/responses',
  send: (client, request) => {
    const body = responseBody(request)
    const options = { headers: request.headers ?? {} }
    return request.streamed
      ? finish(client.responses.create({ ...body, stream: true }, options), readResponseStream)
      : finish(client.responses.create({ ...body, stream: false }, options), readResponse)
  },
  create: (client, request) =>
    postContext(client, { request, body: responseBody(request) }, { whole: readResponse, stream: readResponseStream }),
}

export const apis: readonly Api[] = [completions, chat, responses]

/** The completions API, where it does not matter which. */
export const anyApi = completions

/** The conversation after an answer and the next thing the user says. */
export const continued = (conversation: Conversation, answer: Turn, text: string): Conversation => [
  ...conversation,
  { role: 'assistant', text: answer.text },
  { role: 'user', text },
]

/** The beginning of a conversation, which no other test has: long enough to be stored, too short for the gateway to learn costs from. */
export const opening = (topic: string): Conversation => [
  {
    role: 'user',
    text: `${topic}: say all that is known of it`,
  },
]
