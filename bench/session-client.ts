import { setTimeout as delay } from 'node:timers/promises'
import type { BenchStack } from './bench-stack.ts'
import { call, waitForContext } from './context-api.ts'
import type { Prompt } from './prompts.ts'
import { streamCompletion } from './stream-completion.ts'

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
const answerTokens = 4

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

const turn = async (
  { engine: { model } }: BenchStack,
  url: string,
  prompt: Prompt,
  headers: Record<string, string> = {},
): Promise<Turn> => {
  const {
    ttftMs,
    cachedTokens,
    headers: answered,
  } = await streamCompletion({
    url,
    model,
    prompt,
    maxTokens: answerTokens,
    headers,
  })
  const cache = answered.get('x-context-cache') ?? ''
  return { ttftMs, cachedTokens, sessionId: answered.get('x-session-id'), cache }
}
