/** Token counts of one response. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  /** Prompt tokens that the engine read from its cache. Default: it does not tell. */
  readonly cachedTokens?: number
}

type Members = Readonly<Record<string, unknown>>

/** Reads the `usage` of a response in either of OpenAI's spellings. Undefined: it has no counts; a fraction is none. */
export const readUsage = (value: unknown): TokenUsage | undefined => {
  const usage = membersOf(value)
  const promptTokens = count(usage['input_tokens'] ?? usage['prompt_tokens'])
  const outputTokens = count(usage['output_tokens'] ?? usage['completion_tokens'])
  const details = membersOf(usage['input_tokens_details'] ?? usage['prompt_tokens_details'])
  const cachedTokens = count(details['cached_tokens'] ?? usage['cached_tokens'])
  if (promptTokens === undefined && outputTokens === undefined && cachedTokens === undefined) return undefined
  return { promptTokens: promptTokens ?? 0, outputTokens: outputTokens ?? 0, ...cachedIfKnown(cachedTokens) }
}

/** Reads the `timings` of a response of llama-server, whose streams have them without being asked. */
export const readTimings = (value: unknown): TokenUsage | undefined => {
  const timings = membersOf(value)
  const computedTokens = count(timings['prompt_n'])
  const outputTokens = count(timings['predicted_n'])
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = count(timings['cache_n'])
  // The prompt count excludes the cached tokens.
  return { promptTokens: computedTokens + (cachedTokens ?? 0), outputTokens, ...cachedIfKnown(cachedTokens) }
}

const cachedIfKnown = (cachedTokens: number | undefined) => (cachedTokens === undefined ? {} : { cachedTokens })

const none: Members = {}

const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : none)

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
