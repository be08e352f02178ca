import type { TurnUsage } from '../context/context-cache-manager.ts'
import { readJson } from '../json/read-json.ts'

/**
 * Reads token counts out of what Envoy's Lua filter took from an answer: the JSON texts of its `usage`, in either of OpenAI's spellings, and of
 * llama-server's `timings`, which come with every stream. Total: what cannot be read counts for nothing.
 */
export const readCounts = (usage: string | undefined, timings: string | undefined): TurnUsage | undefined =>
  fromUsage(objectOf(usage)) ?? fromTimings(objectOf(timings))

type Members = Readonly<Record<string, unknown>>

const none: Members = Object.freeze({})

const fromUsage = (usage: Members): TurnUsage | undefined => {
  const promptTokens = count(usage['input_tokens'] ?? usage['prompt_tokens'])
  const outputTokens = count(usage['output_tokens'] ?? usage['completion_tokens'])
  const details = members(usage['input_tokens_details'] ?? usage['prompt_tokens_details'])
  const cachedTokens = count(details['cached_tokens'] ?? usage['cached_tokens'])
  if (promptTokens === undefined && outputTokens === undefined && cachedTokens === undefined) return undefined
  return { promptTokens: promptTokens ?? 0, outputTokens: outputTokens ?? 0, cachedTokens: cachedTokens ?? 0 }
}

/** Its prompt count leaves the cached tokens out. */
const fromTimings = (timings: Members): TurnUsage | undefined => {
  const computedTokens = count(timings['prompt_n'])
  const outputTokens = count(timings['predicted_n'])
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = count(timings['cache_n']) ?? 0
  return { promptTokens: computedTokens + cachedTokens, outputTokens, cachedTokens }
}

const objectOf = (text: string | undefined): Members => (text === undefined ? none : members(readJson(text)))

const members = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : none)

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
