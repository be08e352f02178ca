import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import { call } from './context-api.ts'
import type { Prompt } from './prompts.ts'

/** A completion to stream. */
export interface CompletionRequest {
  readonly url: string
  readonly model: string
  readonly prompt: Prompt
  readonly maxTokens: number
  readonly headers?: Record<string, string>
}

/** A streamed completion, as a client sees it. */
export interface StreamedCompletion {
  /** From the request to the first token. */
  readonly ttftMs: number
  /** From the request to the end of the answer. */
  readonly totalMs: number
  /** By the engine's own account. */
  readonly promptTokens: number | undefined
  readonly cachedTokens: number
  readonly answerTokens: number | undefined
  readonly headers: Headers
}

/** An answer that is not what was asked for; `status` is that of a whole answer instead of a stream. */
export class CompletionError extends Error {
  override readonly name = 'CompletionError'
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

const chunk = z.object({
  choices: z.array(z.unknown()),
  usage: z
    .object({
      prompt_tokens: z.number(),
      completion_tokens: z.number(),
      prompt_tokens_details: z.object({ cached_tokens: z.number() }).nullish(),
    })
    .nullish(),
})

/**
 * Streams a completion to its end.
 * @throws CompletionError; whatever `fetch` throws for a connection that fails or a request that takes too long
 */
export const streamCompletion = async (request: CompletionRequest): Promise<StreamedCompletion> => {
  const { url, model, prompt, maxTokens, headers = {} } = request
  const generation = { max_tokens: maxTokens, temperature: 0, ignore_eos: true }
  const body = { model, prompt, ...generation, stream: true, stream_options: { include_usage: true } }
  const startedMs = performance.now()
  const response = await call(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const { status } = response
  if (!response.ok || response.body === null)
    throw new CompletionError(`${url} answered ${status}: ${await response.text()}`, status)
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  let ttftMs: number | undefined
  let usage: z.infer<typeof chunk>['usage']
  let isComplete = false
  for await (const { data } of events) {
    if (data === '[DONE]') {
      isComplete = true
      continue
    }
    const event = chunk.safeParse(JSON.parse(data))
    if (!event.success) throw new CompletionError(`${url} sent in its stream: ${data}`, status)
    // The first event with a choice is the first token, even where it is half a character and has no text yet.
    if (event.data.choices.length > 0) ttftMs ??= performance.now() - startedMs
    usage = event.data.usage ?? usage
  }
  if (ttftMs === undefined || !isComplete) throw new CompletionError(`${url} ended its stream early`, status)
  return {
    ttftMs,
    totalMs: performance.now() - startedMs,
    promptTokens: usage?.prompt_tokens,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    answerTokens: usage?.completion_tokens,
    headers: response.headers,
  }
}
