import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { BenchStack } from './bench-stack.ts'
import { words } from './words.ts'

/** One conversation, measured four times: milliseconds from the request to the first token. */
export interface RunFigures {
  readonly cold: number
  readonly samePod: number
  readonly otherPodLoaded: number
  /** The same request sent to the other pod past the gateway. */
  readonly otherPodNotLoaded: number
  /** Prompt tokens that the other pod reused after the load, by its own account. */
  readonly cachedTokens: number
}

interface Turn {
  readonly ttftMs: number
  readonly headers: Headers
  readonly cachedTokens: number
}

/** A byte is a token in the random model. */
export const measureRun = async (
  stack: BenchStack,
  prompt: { readonly tokens: number; readonly seed: string },
): Promise<RunFigures> => {
  const text = words(prompt.seed, prompt.tokens)
  const cold = await turn(`${stack.url}/v1/context`, text, {})
  const id = cold.headers.get('x-session-id')
  if (id === null) throw new Error('the create returned no session')
  const session = { 'x-session-id': id }
  await stored(stack, id, 1)

  const second = `${text} ${words(`${prompt.seed} second turn`, 19)}`
  const same = await turn(`${stack.url}/v1/completions`, second, session)
  expectCache(same, 'tier=gpu')
  const pod = await stored(stack, id, 2)

  const other = stack.pods.find((address) => address !== pod)
  const third = `${text} ${words(`${prompt.seed} third turn`, 19)}`
  const notLoaded = await turn(`http://${other}/v1/completions`, third, {})

  // Policies that do not stick reach the other pod by the second try.
  let loaded = await turn(`${stack.url}/v1/completions`, third, { ...session, 'routing-strategy': 'round-robin' })
  if (!loaded.headers.get('x-context-cache')?.includes('tier=store')) {
    await stored(stack, id, 3)
    loaded = await turn(`${stack.url}/v1/completions`, third, { ...session, 'routing-strategy': 'round-robin' })
  }
  expectCache(loaded, 'tier=store')
  await call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' })
  return {
    cold: cold.ttftMs,
    samePod: same.ttftMs,
    otherPodLoaded: loaded.ttftMs,
    otherPodNotLoaded: notLoaded.ttftMs,
    cachedTokens: loaded.cachedTokens,
  }
}

const call = (
  url: string,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
): Promise<Response> =>
  fetch(url, {
    ...init,
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json', ...init.headers },
    signal: AbortSignal.timeout(60_000),
  })

const chunk = z.object({
  choices: z.array(z.object({ text: z.string() })),
  usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }).nullish() }).nullish(),
})

const turn = async (url: string, prompt: string, headers: Record<string, string>): Promise<Turn> => {
  const body = {
    model: 'tiny-random',
    prompt,
    max_tokens: 4,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  }
  const startedMs = performance.now()
  const response = await call(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok || response.body === null)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  let ttftMs: number | undefined
  let cachedTokens = 0
  let rest = ''
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue
      const event = chunk.parse(JSON.parse(line.slice('data: '.length)))
      if (event.choices.some((choice) => choice.text !== '')) ttftMs ??= performance.now() - startedMs
      cachedTokens = event.usage?.prompt_tokens_details?.cached_tokens ?? cachedTokens
    }
  }
  if (ttftMs === undefined) throw new Error(`${url} sent no token`)
  return { ttftMs, cachedTokens, headers: response.headers }
}

const expectCache = (turn: Turn, part: string): void => {
  const line = turn.headers.get('x-context-cache')
  if (!line?.includes(part)) throw new Error(`expected a turn with ${part}, got: ${line}`)
}

const context = z.object({
  kv: z.object({ pod: z.string().nullable(), stored: z.object({ turn: z.number() }).nullable() }),
})

/** Waits until the KV of this turn is in the store; resolves to the pod that served it. */
const stored = async (stack: BenchStack, id: string, turnNumber: number): Promise<string | null> => {
  for (let tries = 0; tries < 500; tries += 1) {
    const { kv } = context.parse(await (await call(`${stack.url}/v1/context/${id}`, {})).json())
    if (kv.stored !== null && kv.stored.turn >= turnNumber) return kv.pod
    await delay(10)
  }
  throw new Error('the KV of a turn was not stored')
}
