import { type Members, membersOf } from '../json/members-of.ts'

/** Token counts of one response. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  /** Prompt tokens that the engine read from its cache. Default: it does not tell. */
  readonly cachedTokens?: number
}

/** Prompt tokens that the engine did not read from its cache. */
export const computedTokensOf = ({ promptTokens, cachedTokens = 0 }: TokenUsage): number =>
  Math.max(0, promptTokens - cachedTokens)

/**
 * Reads the `usage` of a response, in either of OpenAI's spellings or in Anthropic's. A list: those of the start and of
 * the end of a stream, where later counts replace earlier ones. Undefined: it has no counts; a fraction is none.
 */
export const readUsage = (value: unknown): TokenUsage | undefined => {
  const usage = Array.isArray(value) ? laterCounts(value) : membersOf(value)
  const inputTokens = usage['input_tokens'] ?? usage['prompt_tokens']
  // Anthropic's `input_tokens` excludes both.
  const readTokens = count(usage['cache_read_input_tokens'])
  const writtenTokens = count(usage['cache_creation_input_tokens'])
  const besideInput = usage['input_tokens'] === undefined ? 0 : (readTokens ?? 0) + (writtenTokens ?? 0)
  const promptTokens = count(typeof inputTokens === 'number' ? inputTokens + besideInput : undefined)
  const outputTokens = count(usage['output_tokens'] ?? usage['completion_tokens'])
  const details = membersOf(usage['input_tokens_details'] ?? usage['prompt_tokens_details'])
  const cachedTokens = count(details['cached_tokens'] ?? usage['cached_tokens']) ?? readTokens
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

const laterCounts = (list: readonly unknown[]): Members =>
  Object.fromEntries(list.flatMap((one) => Object.entries(membersOf(one)).filter(([, value]) => value !== null)))

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
