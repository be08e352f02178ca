import type { BenchStack } from './bench-stack.ts'
import { makePrompt, type Prompt } from './prompts.ts'
import { startConversation, type Turn, turnPastGateway } from './session-client.ts'

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

/** One turn of a conversation that changes pods with every turn. */
export interface ConversationTurn {
  readonly turn: number
  readonly ttftMs: number
  /** A prompt of the same length that nobody knows, on the same pod, past the gateway. */
  readonly coldTtftMs: number
  readonly cachedTokens: number
  readonly cache: string
}

const secondTurnTokens = 19

/** Measures a prompt of so many tokens. The seed has to be new to the engines. */
export const measureRun = async (
  stack: BenchStack,
  { tokens, seed }: { readonly tokens: number; readonly seed: string },
): Promise<RunFigures> => {
  const make = (name: string, count: number): Prompt => makePrompt(stack.engine.vocabulary, `${seed} ${name}`, count)
  const prompt = make('first turn', tokens)
  const conversation = await startConversation(stack, prompt)
  const samePod = await conversation.next([...prompt, ...make('second turn', secondTurnTokens)])
  expectCache(samePod, 'tier=gpu')
  const otherPod = stack.pods.find((address) => address !== conversation.pod())
  const third = [...prompt, ...make('third turn', secondTurnTokens)]
  // Reaches the other pod by the second try.
  const moved = await conversation.next(third, 'round-robin')
  const loaded = moved.cache.includes('tier=store') ? moved : await conversation.next(third, 'round-robin')
  expectCache(loaded, 'tier=store')
  await conversation.remove()
  // Last, since an engine is still busy storing for a while after it has computed a long prompt.
  const notLoaded = await turnPastGateway(stack, otherPod, make('unknown', tokens + secondTurnTokens))
  return {
    cold: conversation.first.ttftMs,
    samePod: samePod.ttftMs,
    otherPodLoaded: loaded.ttftMs,
    otherPodNotLoaded: notLoaded.ttftMs,
    cachedTokens: loaded.cachedTokens,
  }
}

/** @throws Error when the KV was elsewhere */
const expectCache = ({ cache }: Turn, part: string): void => {
  if (!cache.includes(part)) throw new Error(`expected a turn with ${part}, got: ${cache}`)
}

const turns = 10
const firstTokens = 2500
const moreTokens = 60

/** Measures a conversation of ten turns; each but the first runs on the other pod than the one before. */
export const measureConversation = async (stack: BenchStack, seed: string): Promise<readonly ConversationTurn[]> => {
  const make = (name: string, count: number): Prompt => makePrompt(stack.engine.vocabulary, `${seed} ${name}`, count)
  let prompt = make('1', firstTokens)
  const conversation = await startConversation(stack, prompt)
  const measured: { readonly seen: Turn; readonly pod: string | null; readonly tokens: number }[] = []
  while (measured.length < turns - 1) {
    prompt = [...prompt, ...make(`${prompt.length}`, moreTokens)]
    const before = conversation.pod()
    const seen = await conversation.next(prompt, 'round-robin')
    const pod = conversation.pod()
    // Alternates from the second time on: nothing else sends turns.
    if (pod === before && measured.length > 0) throw new Error(`a turn stayed on ${pod}`)
    if (pod !== before) measured.push({ seen, pod, tokens: prompt.length })
  }
  await conversation.remove()
  // Afterwards: an engine that has computed a long prompt is still busy storing it when the next turn comes.
  const turnsWithCold: ConversationTurn[] = []
  for (const { seen, pod, tokens } of measured) {
    const { ttftMs, cachedTokens, cache } = seen
    const cold = await turnPastGateway(stack, pod, make(`cold ${tokens}`, tokens))
    turnsWithCold.push({ turn: turnsWithCold.length + 2, ttftMs, coldTtftMs: cold.ttftMs, cachedTokens, cache })
  }
  return turnsWithCold
}
