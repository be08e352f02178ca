// From what the client asked to what the engine is to compute, or to the reason why it cannot.
import { createHash, randomInt } from 'node:crypto'
import type { InferenceApi, InferenceBody, PromptInput } from '../openai/inference-body.ts'
import { invalidRequest, type OpenAiError } from '../openai/openai-error.ts'
import type { InferenceRuntime } from '../runtime/inference-runtime.ts'
import type { GenerationRequest } from './generation.ts'

/** A request without what belongs to its connection. */
export type GenerationPlan = Omit<GenerationRequest, 'signal' | 'sessionHash'>

/** What came of planning. */
export type PlanOutcome =
  | { readonly kind: 'planned'; readonly plan: GenerationPlan }
  | { readonly kind: 'invalid'; readonly error: OpenAiError }

/** What a plan depends on beside the body. */
export interface PlanContext {
  readonly runtime: Pick<
    InferenceRuntime,
    'contextTokens' | 'vocabularySize' | 'longestTokenCharacters' | 'tokenize' | 'tokenizeChat'
  >
  readonly slotCount: number
  /** Answer tokens for a request that names no limit, as far as they find room. */
  readonly defaultMaxTokens: number
}

const promptParameters: Readonly<Record<InferenceApi, string>> = {
  completions: 'prompt',
  chat: 'messages',
  responses: 'input',
}
const seedLimit = 2 ** 32

/** Plans the answer to `body`. */
export function planGeneration(body: InferenceBody, context: PlanContext): PlanOutcome {
  const { runtime, slotCount, defaultMaxTokens } = context
  const { contextTokens, vocabularySize } = runtime
  const param = promptParameters[body.api]
  const invalid = (message: string, code: string, field = param): PlanOutcome => ({
    kind: 'invalid',
    error: invalidRequest(message, { param: field, code }),
  })

  if (body.slotId !== undefined && body.slotId >= slotCount) {
    return invalid(`There is no slot ${body.slotId}; slots are 0 to ${slotCount - 1}.`, 'invalid_value', 'id_slot')
  }
  // Nothing else is answered while a text is tokenized, which takes seconds for one of megabytes.
  const leastTokens = Math.ceil(characterCount(body.prompt) / runtime.longestTokenCharacters)
  if (leastTokens > contextTokens) {
    const message = `This model's maximum context length is ${contextTokens} tokens, but the request holds at least ${leastTokens}.`
    return invalid(message, 'context_length_exceeded')
  }
  const tokens = tokenizePrompt(body.prompt, runtime)
  if (tokens.length === 0) return invalid('The prompt is empty.', 'invalid_value')
  if (tokens.some((token) => token >= vocabularySize)) {
    return invalid(`A token id is outside the vocabulary of ${vocabularySize} tokens.`, 'invalid_value')
  }
  const room = contextTokens - tokens.length
  if (room < (body.maxTokens ?? 1)) {
    const wish = body.maxTokens === undefined ? '' : ` and asks for ${body.maxTokens} more`
    const message = `This model's maximum context length is ${contextTokens} tokens, but the request holds ${tokens.length}${wish}.`
    return invalid(message, 'context_length_exceeded')
  }
  return {
    kind: 'planned',
    plan: {
      tokens,
      maxTokens: body.maxTokens ?? Math.min(defaultMaxTokens, room),
      sampling: {
        temperature: body.temperature ?? 1,
        topP: body.topP ?? 1,
        topK: body.topK ?? 0,
        minP: body.minP ?? 0,
        seed: body.seed === undefined ? randomInt(seedLimit) : body.seed >>> 0,
      },
      stops: body.stops,
      slotId: body.slotId,
      saltHash: body.cacheSalt === '' ? '' : createHash('sha256').update(body.cacheSalt).digest('hex'),
    },
  }
}

/** Characters that have to be tokenized. */
function characterCount(prompt: PromptInput): number {
  switch (prompt.kind) {
    case 'text':
      return prompt.text.length
    case 'tokens':
      return 0
    case 'messages':
      return prompt.messages.reduce((sum, { content }) => sum + content.length, 0)
  }
}

/** Turns a prompt of any kind into tokens. */
export function tokenizePrompt(
  prompt: PromptInput,
  runtime: Pick<InferenceRuntime, 'tokenize' | 'tokenizeChat'>,
): readonly number[] {
  switch (prompt.kind) {
    case 'text':
      return runtime.tokenize(prompt.text)
    case 'tokens':
      return prompt.tokens
    case 'messages':
      return runtime.tokenizeChat(prompt.messages)
  }
}
