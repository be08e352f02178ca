import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import { readUsage } from '../../src/openai/usage.ts'
import { call } from '../context-api.ts'
import { CompletionError, type StreamedCompletion } from '../stream-completion.ts'
import type { AgentRequest } from './agents.ts'

const withUsage = z.object({ usage: z.unknown().optional() }).nullish()

/** An event of any of the three interfaces. */
const eventForm = z.object({
  type: z.string().optional(),
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }).optional() })).optional(),
  usage: z.unknown().optional(),
  message: withUsage,
  response: withUsage,
})

const textEvents: ReadonlySet<string | undefined> = new Set(['response.output_text.delta', 'content_block_delta'])
const lastEvents: ReadonlySet<string | undefined> = new Set(['response.completed', 'message_stop'])

/**
 * Sends an agent's request and reads its answer to the end. An answer without text has its first token at its end.
 * @throws CompletionError; whatever `fetch` throws for a connection that fails or a request that takes too long
 */
export const streamAgentAnswer = async (
  origin: string,
  { path, headers, body }: AgentRequest,
): Promise<StreamedCompletion> => {
  const url = `${origin}${path}`
  const startedMs = performance.now()
  const response = await call(url, { method: 'POST', headers, body })
  const { status } = response
  if (!response.ok || response.body === null)
    throw new CompletionError(`${url} answered ${status}: ${await response.text()}`, status)
  let firstMs: number | undefined
  let isComplete = false
  const usages: unknown[] = []
  for await (const { data } of response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())) {
    if (data === '[DONE]') {
      isComplete = true
      continue
    }
    const event = eventForm.parse(JSON.parse(data))
    if (textEvents.has(event.type) || event.choices?.[0]?.delta?.content) firstMs ??= performance.now()
    isComplete ||= lastEvents.has(event.type)
    usages.push(event.usage, event.message?.usage, event.response?.usage)
  }
  const endedMs = performance.now()
  if (!isComplete) throw new CompletionError(`${url} ended its stream early`, status)
  const usage = readUsage(usages)
  return {
    ttftMs: (firstMs ?? endedMs) - startedMs,
    totalMs: endedMs - startedMs,
    promptTokens: usage?.promptTokens,
    cachedTokens: usage?.cachedTokens ?? 0,
    answerTokens: usage?.outputTokens,
    headers: response.headers,
  }
}
