import { call, type HttpResponse } from '../support/client.ts'
import type { PodScript } from '../support/pod-script.ts'
import { event } from '../support/scripted-responses.ts'
import type { Stack } from '../support/stack.ts'

export const question = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }], temperature: 0 }

/** A chat whose response may come from the response cache. */
export const ask = (
  stack: Stack,
  part: { readonly body?: object; readonly headers?: Record<string, string>; readonly path?: string } = {},
): Promise<HttpResponse> =>
  call(`${stack.url}${part.path ?? '/v1/chat/completions'}`, {
    headers: { 'x-response-cache': 'on', ...part.headers },
    body: part.body ?? question,
  })

export const cacheHeader = (response: { readonly headers: Headers }): string | null =>
  response.headers.get('x-response-cache')

/** Responses with ids that differ, so that a replayed response differs from one that was computed. */
export const numberedResponses = (): PodScript => {
  let number = 0
  return (request, reply) => {
    number += 1
    const { stream } = JSON.parse(request.body) as { readonly stream?: boolean }
    if (stream !== true) return reply.json(200, chat(`chatcmpl-${number}`))
    for (const piece of chatStream(`chatcmpl-${number}`, /"include_usage":true/.test(request.body))) reply.write(piece)
    reply.end()
  }
}

const usage = { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13, prompt_tokens_details: { cached_tokens: 4 } }

const chat = (id: string): unknown => ({
  id,
  object: 'chat.completion',
  model: 'scripted',
  choices: [{ index: 0, message: { role: 'assistant', content: 'one two' }, finish_reason: 'stop' }],
  usage,
})

export const chatStream = (id: string, withUsage: boolean): readonly string[] => [
  ...['one ', 'two'].map((content) => event({ id, choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
  event({ id, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  ...(withUsage ? [event({ id, choices: [], usage })] : []),
  event('[DONE]'),
]
