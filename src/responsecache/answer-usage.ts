import type { ResponseUsage } from './response-cache.ts'

/** Reads a parsed answer, or an event of a streamed one: OpenAI's `usage` in either spelling, else the `timings` of llama-server. */
export const readUsage = (answer: unknown): ResponseUsage | undefined => {
  const usage = member(answer, 'usage') ?? member(member(answer, 'response'), 'usage')
  return isObject(usage) ? fromUsage(usage) : fromTimings(member(answer, 'timings'))
}

const fromUsage = (usage: object): ResponseUsage | undefined => {
  const promptTokens = count(member(usage, 'prompt_tokens')) ?? count(member(usage, 'input_tokens'))
  const outputTokens = count(member(usage, 'completion_tokens')) ?? count(member(usage, 'output_tokens'))
  const details = member(usage, 'prompt_tokens_details') ?? member(usage, 'input_tokens_details')
  if (promptTokens === undefined && outputTokens === undefined) return undefined
  return {
    promptTokens: promptTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    cachedTokens: count(member(details, 'cached_tokens')) ?? 0,
  }
}

/** Its prompt count leaves the reused tokens out. */
const fromTimings = (timings: unknown): ResponseUsage | undefined => {
  const computedTokens = count(member(timings, 'prompt_n'))
  const outputTokens = count(member(timings, 'predicted_n'))
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = count(member(timings, 'cache_n')) ?? 0
  return { promptTokens: computedTokens + cachedTokens, outputTokens, cachedTokens }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A member of a parsed JSON object; undefined where there is none, or no object. */
export const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
