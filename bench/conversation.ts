import type { BenchStack } from './bench-stack.ts'
import type { Prompt } from './prompts.ts'
import { call, ended, sessionIdOf, think, turn } from './session-client.ts'

/** One turn of a conversation that changes pods with every turn. */
export interface ConversationTurn {
  readonly turn: number
  readonly ttftMs: number
  /** A prompt of the same length that nobody knows, on the same pod, past the gateway. */
  readonly coldTtftMs: number
  readonly cachedTokens: number
  readonly cache: string
}

const turns = 10
const firstTokens = 2500
const moreTokens = 60

/** A conversation of ten turns; each but the first runs on the other pod than the one before. */
export const measureConversation = async (stack: BenchStack, seed: string): Promise<readonly ConversationTurn[]> => {
  const { make, join } = stack.engine.prompts
  let prompt: Prompt = make(seed, firstTokens)
  const id = sessionIdOf(await turn(stack, `${stack.url}/v1/context`, prompt, {}))
  let pod = await ended(stack, id, 1)
  const measured: (Omit<ConversationTurn, 'coldTtftMs'> & { readonly pod: string | null; readonly tokens: number })[] =
    []
  for (let number = 2; measured.length < turns - 1; number += 1) {
    prompt = join(prompt, make(`${seed} ${number}`, moreTokens))
    // Alternates from the second time on: nobody else sends turns.
    const headers = { 'x-session-id': id, 'routing-strategy': 'round-robin' }
    await think()
    const seen = await turn(stack, `${stack.url}/v1/completions`, prompt, headers)
    const before = pod
    pod = await ended(stack, id, number)
    if (pod === before && measured.length > 0) throw new Error(`turn ${number} stayed on ${pod}`)
    if (pod === before) continue
    measured.push({
      turn: measured.length + 2,
      ttftMs: seen.ttftMs,
      pod,
      tokens: firstTokens + (number - 1) * moreTokens,
      cachedTokens: seen.cachedTokens,
      cache: seen.headers.get('x-context-cache') ?? '',
    })
  }
  await call(`${stack.url}/v1/context/${id}`, { method: 'DELETE' })
  // Afterwards: an engine that has computed a long prompt is still busy storing it when the next turn comes.
  const turnsWithCold: ConversationTurn[] = []
  for (const { pod: where, tokens, ...figures } of measured) {
    await think()
    const cold = await turn(stack, `http://${where}/v1/completions`, make(`${seed} cold ${tokens}`, tokens), {})
    turnsWithCold.push({ ...figures, coldTtftMs: cold.ttftMs })
  }
  return turnsWithCold
}
