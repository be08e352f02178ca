import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { BenchStack } from './bench-stack.ts'
import type { Prompt } from './prompts.ts'

/** A streamed turn, as a client saw it. */
export interface Turn {
  /** From the request to the first token. */
  readonly ttftMs: number
  readonly headers: Headers
  readonly cachedTokens: number
  readonly text: string
}

const requestTimeoutMs = 120_000

export const call = (
  url: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
): Promise<Response> =>
  fetch(url, {
    ...init,
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json', ...init.headers },
    signal: AbortSignal.timeout(requestTimeoutMs),
  })

const chunk = z.object({
  choices: z.array(z.object({ text: z.string() })),
  usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }).nullish() }).nullish(),
})

export const turn = async (
  stack: Pick<BenchStack, 'engine'>,
  url: string,
  prompt: Prompt,
  headers: Record<string, string>,
): Promise<Turn> => {
  const body = {
    model: stack.engine.model,
    prompt,
    max_tokens: 4,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  }
  const startedMs = performance.now()
  const response = await call(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok || response.body === null)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  let ttftMs: number | undefined
  let cachedTokens = 0
  let text = ''
  let rest = ''
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue
      const event = chunk.parse(JSON.parse(line.slice('data: '.length)))
      // The first event with a choice is the first token, even where it is half a character and has no text yet.
      if (event.choices.length > 0) ttftMs ??= performance.now() - startedMs
      text += event.choices.map((choice) => choice.text).join('')
      cachedTokens = event.usage?.prompt_tokens_details?.cached_tokens ?? cachedTokens
    }
  }
  if (ttftMs === undefined) throw new Error(`${url} sent no token`)
  return { ttftMs, cachedTokens, headers: response.headers, text }
}

export const sessionIdOf = ({ headers }: Turn): string => {
  const id = headers.get('x-session-id')
  if (id === null) throw new Error('the create returned no session')
  return id
}

/** @throws Error when the gateway says something else of what it found */
export const expectCache = (seen: Turn, part: string): void => {
  const line = seen.headers.get('x-context-cache')
  if (!line?.includes(part)) throw new Error(`expected a turn with ${part}, got: ${line}`)
}

const context = z.object({
  turns: z.number(),
  kv: z.object({
    pod: z.string().nullable(),
    stored: z.object({ turn: z.number() }).nullable(),
    note: z.string().nullish(),
  }),
})

const thinkMs = 2_000

/** A person reads before asking on. Engines that share processors go on spinning and storing for a second after an answer. */
export const think = (): Promise<void> => delay(thinkMs)

const tries = 2000
const pauseMs = 10

/** Waits until this turn has ended and its KV is in the store; resolves to the pod that served it. */
export const ended = async (stack: BenchStack, id: string, turnNumber: number): Promise<string | null> => {
  let seen: z.infer<typeof context> | undefined
  for (let count = 0; count < tries; count += 1) {
    seen = context.parse(await (await call(`${stack.url}/v1/context/${id}`, {})).json())
    const storedTurn = seen.kv.stored?.turn ?? 0
    const isStored = storedTurn >= turnNumber || (storedTurn > 0 && !stack.engine.storesEveryTurn)
    if (seen.turns >= turnNumber && isStored) return seen.kv.pod
    await delay(pauseMs)
  }
  throw new Error(`turn ${turnNumber} did not end: ${JSON.stringify(seen)}`)
}
