/** Token counts of one response. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  /** Prompt tokens that the engine read from its cache. */
  readonly cachedTokens: number
}

/**
 * Reads the counts of a response: from its `usage` in either of OpenAI's spellings, else from the `timings` of llama-server. Undefined: neither
 * has counts. What is not a count, such as a fraction, is ignored.
 */
export const readUsage = (usage: unknown, timings: unknown): TokenUsage | undefined =>
  fromUsage(membersOf(usage)) ?? fromTimings(membersOf(timings))

type Members = Readonly<Record<string, unknown>>

const fromUsage = (usage: Members): TokenUsage | undefined => {
  const promptTokens = count(usage['input_tokens'] ?? usage['prompt_tokens'])
  const outputTokens = count(usage['output_tokens'] ?? usage['completion_tokens'])
  const details = membersOf(usage['input_tokens_details'] ?? usage['prompt_tokens_details'])
  const cachedTokens = count(details['cached_tokens'] ?? usage['cached_tokens'])
  if (promptTokens === undefined && outputTokens === undefined && cachedTokens === undefined) return undefined
  return { promptTokens: promptTokens ?? 0, outputTokens: outputTokens ?? 0, cachedTokens: cachedTokens ?? 0 }
}

/** Its prompt count excludes the cached tokens. */
const fromTimings = (timings: Members): TokenUsage | undefined => {
  const computedTokens = count(timings['prompt_n'])
  const outputTokens = count(timings['predicted_n'])
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = count(timings['cache_n']) ?? 0
  return { promptTokens: computedTokens + cachedTokens, outputTokens, cachedTokens }
}

const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
