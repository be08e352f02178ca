import type { BenchStack } from './bench-stack.ts'
import { call, ended, expectCache, sessionIdOf, think, turn } from './session-client.ts'

/** One conversation, measured four times: milliseconds from the request to the first token. */
export interface RunFigures {
  readonly cold: number
  readonly samePod: number
  readonly otherPodLoaded: number
  /** A prompt of the same length that the other pod does not know, past the gateway. */
  readonly otherPodNotLoaded: number
  /** Prompt tokens that the other pod reused after the load, by its own account. */
  readonly cachedTokens: number
}

const moreTokens = 19

export const measureRun = async (
  stack: BenchStack,
  prompt: { readonly tokens: number; readonly seed: string },
): Promise<RunFigures> => {
  const { make, join } = stack.engine.prompts
  const text = make(prompt.seed, prompt.tokens)
  const cold = await turn(stack, `${stack.url}/v1/context`, text, {})
  const id = sessionIdOf(cold)
  const session = { 'x-session-id': id }
  await ended(stack, id, 1)

  const second = join(text, make(`${prompt.seed} second turn`, moreTokens))
  await think()
  const same = await turn(stack, `${stack.url}/v1/completions`, second, session)
  expectCache(same, 'tier=gpu')
  const pod = await ended(stack, id, 2)

  const elsewhere = stack.pods.find((address) => address !== pod)
  const third = join(text, make(`${prompt.seed} third turn`, moreTokens))
  // Policies that do not stick reach the other pod by the second try.
  const roundRobin = { ...session, 'routing-strategy': 'round-robin' }
  await think()
  let loaded = await turn(stack, `${stack.url}/v1/completions`, third, roundRobin)
  if (!loaded.headers.get('x-context-cache')?.includes('tier=store')) {
    await ended(stack, id, 3)
    await think()
    loaded = await turn(stack, `${stack.url}/v1/completions`, third, roundRobin)
  }
  expectCache(loaded, 'tier=store')
  await call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' })
  // Last, since an engine is still busy storing for a while after it has computed a long prompt.
  const unknown = make(`${prompt.seed} unknown`, prompt.tokens + moreTokens)
  await think()
  const notLoaded = await turn(stack, `http://${elsewhere}/v1/completions`, unknown, {})
  return {
    cold: cold.ttftMs,
    samePod: same.ttftMs,
    otherPodLoaded: loaded.ttftMs,
    otherPodNotLoaded: notLoaded.ttftMs,
    cachedTokens: loaded.cachedTokens,
  }
}
