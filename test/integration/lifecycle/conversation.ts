import type OpenAI from 'openai'
import type { Stream } from 'openai/streaming'
import { model } from '../support/client.ts'

/** All messages, from the first one on. */
export type Conversation = readonly { readonly role: 'user' | 'assistant'; readonly text: string }[]

/** A turn with its response, of any API. */
export interface Turn {
  readonly text: string
  /** Undefined: the response has none. */
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

/** One of OpenAI's APIs, through the unmodified SDK. */
export interface Api {
  readonly name: string
  readonly path: string
  /** By a POST to the API's path. */
  send(client: OpenAI, request: TurnRequest): Promise<Turn>
  /** By `POST /v1/context`, with the same body. */
  create(client: OpenAI, request: TurnRequest): Promise<Turn>
}

const outputTokens = 8

const usageOption = ({ streamed, includeUsage = true }: TurnRequest) =>
  streamed && includeUsage ? { stream_options: { include_usage: true } } : {}

/** The text of a response, and its token counts. */
type Read = Omit<Turn, 'headers'>

/** How the SDK sends a body, and how its response is read. */
interface ApiParts<Whole, Chunk> {
  readonly name: string
  readonly path: string
  readonly body: (request: TurnRequest) => object
  readonly whole: (response: Whole) => Read
  /** What an event of a stream adds. */
  readonly chunk: (event: Chunk) => Partial<Read>
}

const createApi = <Whole, Chunk>({ name, path, body, whole, chunk }: ApiParts<Whole, Chunk>): Api => {
  const send = async (client: OpenAI, url: string, request: TurnRequest): Promise<Turn> => {
    const options = { body: { ...body(request), stream: request.streamed }, headers: request.headers ?? {} }
    if (!request.streamed) {
      const { data, response } = await client.post<Whole>(url, options).withResponse()
      return { ...whole(data), headers: response.headers }
    }
    const { data, response } = await client.post<Stream<Chunk>>(url, { ...options, stream: true }).withResponse()
    let read: Read = { text: '', usage: undefined }
    for await (const event of data) {
      const { text = '', usage } = chunk(event)
      read = { text: read.text + text, usage: usage ?? read.usage }
    }
    return { ...read, headers: response.headers }
  }
  return {
    name,
    path,
    send: (client, request) => send(client, path.slice('/v1'.length), request),
    create: (client, request) => send(client, '/context', request),
  }
}

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

/** A completion's prompt is the conversation as one text, which the response continues. */
const completions = createApi<OpenAI.Completion, OpenAI.Completion>({
  name: 'completions',
  path: '/v1/completions',
  body: (request) => ({
    model,
    prompt: request.conversation.map(({ text }) => text).join('\n'),
    max_tokens: outputTokens,
    ...usageOption(request),
  }),
  whole: ({ choices, usage }) => ({ text: choices[0]?.text ?? '', usage: tokensOf(usage) }),
  chunk: ({ choices, usage }) => ({ text: choices[0]?.text ?? '', usage: tokensOf(usage) }),
})

const chat = createApi<OpenAI.ChatCompletion, OpenAI.ChatCompletionChunk>({
  name: 'chat completions',
  path: '/v1/chat/completions',
  body: (request) => ({
    model,
    messages: request.conversation.map(({ role, text }) => ({ role, content: text })),
    max_tokens: outputTokens,
    ...usageOption(request),
  }),
  whole: ({ choices, usage }) => ({ text: choices[0]?.message.content ?? '', usage: tokensOf(usage) }),
  chunk: ({ choices, usage }) => ({ text: choices[0]?.delta.content ?? '', usage: tokensOf(usage) }),
})

/** An output comes back in the form in which it was given: engines refuse shorter ones. */
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

const responses = createApi<OpenAI.Responses.Response, OpenAI.Responses.ResponseStreamEvent>({
  name: 'responses',
  path: '/v1/responses',
  body: ({ conversation }) => ({
    model,
    input: conversation.map(responseItem),
    max_output_tokens: outputTokens,
  }),
  whole: ({ output, usage }) => ({
    text: output
      .flatMap((item) => (item.type === 'message' ? item.content : []))
      .map((part) => (part.type === 'output_text' ? part.text : ''))
      .join(''),
    usage: responseTokensOf(usage),
  }),
  chunk: (event) => {
    if (event.type === 'response.output_text.delta') return { text: event.delta }
    return event.type === 'response.completed' ? { usage: responseTokensOf(event.response.usage) } : {}
  },
})

export const apis: readonly Api[] = [completions, chat, responses]

/** The completions API, where it does not matter which. */
export const anyApi = completions

/** The conversation after an answer and the next thing the user says. */
export const continued = (conversation: Conversation, response: Turn, text: string): Conversation => [
  ...conversation,
  { role: 'assistant', text: response.text },
  { role: 'user', text },
]

/** The beginning of a conversation, which no other test has: long enough to be stored, too short to teach costs. */
export const opening = (topic: string): Conversation => [
  {
    role: 'user',
    text: `${topic}: say all that is known of it`,
  },
]
