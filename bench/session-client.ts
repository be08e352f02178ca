import { setTimeout as delay } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { z } from 'zod'
import type { BenchStack } from './bench-stack.ts'
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

const requestTimeoutMs = 120_000
const thinkMs = 2_000
const tries = 2000
const pauseMs = 10

export const call = (
  url: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
): Promise<Response> =>
  fetch(url, {
    ...init,
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json', ...init.headers },
    signal: AbortSignal.timeout(requestTimeoutMs),
  })

/** Creates a session with a first turn. Its KV is in the store when this resolves. */
export const startConversation = async (stack: BenchStack, prompt: Prompt): Promise<Conversation> => {
  const first = await turn(stack, `${stack.url}/v1/context`, prompt)
  const { sessionId } = first
  if (sessionId === null) throw new Error('the create returned no session')
  let turns = 1
  let pod = await ended(stack, sessionId, turns)
  return {
    first,
    pod: () => pod,
    next: async (nextPrompt, policy) => {
      await think()
      const headers = { 'x-session-id': sessionId, ...(policy && { 'routing-strategy': policy }) }
      const seen = await turn(stack, `${stack.url}/v1/completions`, nextPrompt, headers)
      turns += 1
      pod = await ended(stack, sessionId, turns)
      return seen
    },
    remove: () => call(`${stack.url}/v1/context/${sessionId}`, { method: 'DELETE' }),
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

/** A person reads before asking on. Engines that share processors go on spinning and storing for a second after an answer. */
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

const context = z.object({
  turns: z.number(),
  kv: z.object({ pod: z.string().nullable(), stored: z.object({ turn: z.number() }).nullable() }),
})

/** Waits until this turn has ended and its KV is in the store; resolves to the pod that served it. */
const ended = async ({ url, engine }: BenchStack, id: string, turnNumber: number): Promise<string | null> => {
  let seen: z.infer<typeof context> | undefined
  for (let count = 0; count < tries; count += 1) {
    seen = context.parse(await (await call(`${url}/v1/context/${id}`, {})).json())
    const storedTurn = seen.kv.stored?.turn ?? 0
    const isStored = storedTurn >= turnNumber || (storedTurn > 0 && !engine.storesEveryTurn)
    if (seen.turns >= turnNumber && isStored) return seen.kv.pod
    await delay(pauseMs)
  }
  throw new Error(`turn ${turnNumber} did not end: ${JSON.stringify(seen)}`)
}
