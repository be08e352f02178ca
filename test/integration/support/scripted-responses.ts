import type { PodScript, RecordedRequest } from './pod-script.ts'

/** The inference APIs, by their paths. */
export const inferencePaths = ['/v1/completions', '/v1/chat/completions', '/v1/responses', '/v1/messages'] as const
export type InferencePath = (typeof inferencePaths)[number]

/** Token counts that a scripted response reports. */
export interface ScriptedUsage {
  readonly prompt: number
  readonly output: number
  readonly cached: number
}

const someUsage: ScriptedUsage = { prompt: 100, output: 3, cached: 0 }

/** A server-sent event; `name` for those of the Responses and the Messages API. */
export const event = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

/** A response of the form that the request asks for, streamed with `"stream": true`. */
export const engineResponse =
  (usage: ScriptedUsage = someUsage): PodScript =>
  (request, reply) => {
    const path = request.path.replace(/\?.*/, '') as InferencePath
    if (!wantsStream(request)) return reply.json(200, wholeResponse(path, usage))
    for (const piece of streamedResponse(path, usage)) reply.write(piece)
    reply.end()
  }

/** The body of a 200. */
export const wholeResponse = (path: InferencePath, usage: ScriptedUsage = someUsage): unknown => {
  switch (path) {
    case '/v1/completions':
      return {
        id: 'cmpl-1',
        object: 'text_completion',
        created: 1,
        model: 'scripted',
        choices: [{ index: 0, text: 'one two', finish_reason: 'stop', logprobs: null }],
        usage: chatUsage(usage),
      }
    case '/v1/chat/completions':
      return {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'scripted',
        choices: [{ index: 0, message: { role: 'assistant', content: 'one two' }, finish_reason: 'stop' }],
        usage: chatUsage(usage),
      }
    case '/v1/responses':
      return responseObject('completed', usage)
    case '/v1/messages':
      return message([{ type: 'text', text: 'one two' }], messagesUsage(usage))
  }
}

/** The events of a stream, the last one included. */
export const streamedResponse = (path: InferencePath, usage: ScriptedUsage = someUsage): readonly string[] => {
  switch (path) {
    case '/v1/completions':
      return [
        ...['one ', 'two'].map((text) => event({ id: 'cmpl-1', choices: [{ index: 0, text, finish_reason: null }] })),
        event({ id: 'cmpl-1', choices: [], usage: chatUsage(usage) }),
        event('[DONE]'),
      ]
    case '/v1/chat/completions':
      return [
        ...['one ', 'two'].map((content) =>
          event({ id: 'chatcmpl-1', choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
        ),
        event({ id: 'chatcmpl-1', choices: [], usage: chatUsage(usage) }),
        event('[DONE]'),
      ]
    case '/v1/responses':
      return [
        event({ type: 'response.created', response: responseObject('in_progress', undefined) }, 'response.created'),
        event({ type: 'response.output_text.delta', delta: 'one two' }, 'response.output_text.delta'),
        event({ type: 'response.completed', response: responseObject('completed', usage) }, 'response.completed'),
      ]
    case '/v1/messages':
      return [
        messagesEvent('message_start', { message: message([], { ...messagesUsage(usage), output_tokens: 1 }) }),
        messagesEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
        messagesEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'one two' } }),
        messagesEvent('content_block_stop', { index: 0 }),
        messagesEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: usage.output } }),
        messagesEvent('message_stop', {}),
      ]
  }
}

const wantsStream = ({ body }: RecordedRequest): boolean => /"stream"\s*:\s*true/.test(body)

const chatUsage = ({ prompt, output, cached }: ScriptedUsage) => ({
  prompt_tokens: prompt,
  completion_tokens: output,
  total_tokens: prompt + output,
  prompt_tokens_details: { cached_tokens: cached },
})

/** An event of a stream of the Messages API. */
export const messagesEvent = (type: string, rest: object): string => event({ type, ...rest }, type)

const message = (content: readonly object[], usage: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'scripted',
  content,
  stop_reason: content.length === 0 ? null : 'end_turn',
  stop_sequence: null,
  usage,
})

/** Anthropic's `input_tokens` excludes the cached ones. */
const messagesUsage = ({ prompt, output, cached }: ScriptedUsage) => ({
  input_tokens: prompt - cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cached,
  output_tokens: output,
})

const responseObject = (status: string, usage: ScriptedUsage | undefined) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model: 'scripted',
  output:
    usage === undefined
      ? []
      : [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status,
            content: [{ type: 'output_text', text: 'one two', annotations: [] }],
          },
        ],
  usage:
    usage === undefined
      ? null
      : {
          input_tokens: usage.prompt,
          input_tokens_details: { cached_tokens: usage.cached },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: usage.prompt + usage.output,
        },
})

/** A body for each inference API. */
export const inferenceBodies: Readonly<Record<InferencePath, object>> = {
  '/v1/completions': { model: 'scripted', prompt: 'hello' },
  '/v1/chat/completions': { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] },
  '/v1/responses': { model: 'scripted', input: 'hello' },
  '/v1/messages': { model: 'scripted', max_tokens: 9, messages: [{ role: 'user', content: 'hello' }] },
}
