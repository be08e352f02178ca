import { setTimeout as delay } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import type { BenchStack } from './bench-stack.ts'
import { call, waitForContext } from './context-api.ts'
import type { Prompt } from './prompts.ts'

/** A streamed turn, as a client sees it. */
export interface Turn {
  /** From the request to the first token. */
  readonly ttftMs: number
  readonly cachedTokens: number
  readonly sessionId: string | null
  /** The header `x-context-cache`. */
  readonly cache: string
}

/** A conversation with a session. */
export interface Conversation {
  readonly first: Turn
  /** The pod that served the last turn. */
  pod(): string | null
  /** Sends a turn after a pause, by `round-robin` or the default policy, and waits until it has ended. */
  next(prompt: Prompt, policy?: 'round-robin'): Promise<Turn>
  remove(): Promise<unknown>
}

const thinkMs = 2_000

/** Creates a session with a first turn. Its KV is in the store when this resolves. */
export const startConversation = async (stack: BenchStack, prompt: Prompt): Promise<Conversation> => {
  const first = await turn(stack, `${stack.url}/v1/context`, prompt)
  const { sessionId } = first
  if (sessionId === null) throw new Error('the create returned no session')
  const contextUrl = `${stack.url}/v1/context/${sessionId}`
  let turns = 0
  /** Waits until the turn has ended and its KV is in the store. */
  const ended = async (): Promise<string | null> => {
    turns += 1
    const { kv } = await waitForContext(contextUrl, (context) => {
      const storedTurn = context.kv.stored?.turn ?? 0
      return context.turns >= turns && storedTurn >= (stack.engine.storesEveryTurn ? turns : 1)
    })
    return kv.pod
  }
  let pod = await ended()
  return {
    first,
    pod: () => pod,
    next: async (nextPrompt, policy) => {
      await think()
      const headers = { 'x-session-id': sessionId, ...(policy && { 'routing-strategy': policy }) }
      const seen = await turn(stack, `${stack.url}/v1/completions`, nextPrompt, headers)
      pod = await ended()
      return seen
    },
    remove: () => call(contextUrl, { method: 'DELETE' }),
  }
}

/** Sends a prompt to a pod itself, after a pause. */
export const turnPastGateway = async (
  stack: BenchStack,
  pod: string | null | undefined,
  prompt: Prompt,
): Promise<Turn> => {
  await think()
  return turn(stack, `http://${pod}/v1/completions`, prompt)
}

/** A person reads before asking on. Engines that share processors spin and store for a second after an answer. */
const think = (): Promise<void> => delay(thinkMs)

const chunk = z.object({
  choices: z.array(z.unknown()),
  usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }).nullish() }).nullish(),
})

const turn = async (
  { engine: { model } }: BenchStack,
  url: string,
  prompt: Prompt,
  headers: Record<string, string> = {},
): Promise<Turn> => {
  const generation = { max_tokens: 4, temperature: 0, ignore_eos: true }
  const body = { model, prompt, ...generation, stream: true, stream_options: { include_usage: true } }
  const startedMs = performance.now()
  const response = await call(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok || response.body === null)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  let ttftMs: number | undefined
  let cachedTokens = 0
  for await (const { data } of events) {
    if (data === '[DONE]') continue
    const { choices, usage } = chunk.parse(JSON.parse(data))
    // The first event with a choice is the first token, even where it is half a character and has no text yet.
    if (choices.length > 0) ttftMs ??= performance.now() - startedMs
    cachedTokens = usage?.prompt_tokens_details?.cached_tokens ?? cachedTokens
  }
  if (ttftMs === undefined) throw new Error(`${url} sent no token`)
  const { headers: answered } = response
  const cache = answered.get('x-context-cache') ?? ''
  return { ttftMs, cachedTokens, sessionId: answered.get('x-session-id'), cache }
}
