// Reads the bodies of the three inference interfaces into one form.
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { GenerationRequest } from './engine.ts'
import { EngineError } from './exchange.ts'
import type { ChatMessage, LlamaRuntime } from './llama-runtime.ts'
import type { Sampling } from './llama-sequence.ts'

export type InferenceApi = 'completions' | 'chat' | 'responses'

/** An inference request, whichever interface it came through. */
export interface InferenceBody {
  readonly model: string
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly request: Omit<GenerationRequest, 'signal'>
}

const tokenCount = z.int().min(1).nullish()
const tokenList = z.array(z.int().min(0)).min(1)
const content = z.union([z.string(), z.array(z.looseObject({ text: z.string() }))]).nullish()
const messages = z.array(z.looseObject({ role: z.string(), content })).min(1)

const schema = z.object({
  model: z.string().min(1),
  prompt: z.union([z.string(), tokenList, z.tuple([z.string()]), z.tuple([tokenList])]).optional(),
  messages: messages.optional(),
  input: z.union([z.string(), messages]).optional(),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: tokenCount,
  max_completion_tokens: tokenCount,
  max_output_tokens: tokenCount,
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  seed: z.int().nullish(),
  id_slot: z.int().min(-1).nullish(),
  n_keep: z.int().nullish(),
})

const promptFields = { completions: 'prompt', chat: 'messages', responses: 'input' } as const
const seedLimit = 2 ** 32

/** Answer tokens for a request that names no limit. */
const defaultMaxTokens = 128

/** `value` is the JSON object that was sent. @throws EngineError */
export const parseInferenceBody = (
  api: InferenceApi,
  value: Readonly<Record<string, unknown>>,
  llama: LlamaRuntime,
): InferenceBody => {
  const field = promptFields[api]
  const { data: body, error } = schema.safeParse(value)
  if (body === undefined) {
    const [issue] = error.issues
    throw invalid(`'${issue?.path.join('.')}': ${issue?.message}.`)
  }
  if (body[field] === undefined) throw invalid(`'${field}' is missing.`)
  const slotId = body.id_slot === -1 ? undefined : (body.id_slot ?? undefined)
  if (slotId !== undefined && llama.sequences[slotId] === undefined) throw invalid(`There is no slot ${slotId}.`)
  const tokens = promptTokens(body, llama)
  if (tokens.length === 0) throw invalid('The prompt is empty.')
  if (tokens.some((token) => token >= llama.vocabularySize)) throw invalid('A token id is outside the vocabulary.')
  const limit = body.max_output_tokens ?? body.max_completion_tokens ?? body.max_tokens ?? undefined
  const room = llama.contextTokens - tokens.length
  if (room < (limit ?? 1)) {
    const sizes = `of ${tokens.length} tokens, with ${limit ?? 1} more, exceeds the context of ${llama.contextTokens}`
    throw invalid(`The prompt ${sizes}.`)
  }
  return {
    model: body.model,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    request: {
      tokens,
      maxTokens: limit ?? Math.min(defaultMaxTokens, room),
      sampling: samplingOf(body),
      stops: [body.stop ?? []].flat(),
      slotId,
      keep: body.n_keep ?? 0,
    },
  }
}

const invalid = (message: string): EngineError => new EngineError(400, message)

const samplingOf = (body: z.infer<typeof schema>): Sampling => ({
  temperature: body.temperature ?? 1,
  topP: body.top_p ?? 1,
  topK: Math.max(body.top_k ?? 0, 0),
  minP: body.min_p ?? 0,
  seed: (body.seed ?? randomInt(seedLimit)) >>> 0,
})

const promptTokens = (body: z.infer<typeof schema>, llama: LlamaRuntime): readonly number[] => {
  const { prompt, input, instructions } = body
  if (typeof prompt === 'string') return llama.tokenize(prompt)
  if (prompt !== undefined) {
    const [first] = prompt
    if (typeof first === 'string') return llama.tokenize(first)
    return Array.isArray(first) ? first : prompt.filter((token) => typeof token === 'number')
  }
  const user = typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? body.messages ?? [])
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []
  return llama.tokenizeChat([...system, ...user].map(toMessage))
}

const toMessage = (message: { readonly role: string; readonly content?: z.infer<typeof content> }): ChatMessage => {
  const { role, content: said } = message
  return { role, content: typeof said === 'string' ? said : (said ?? []).map((part) => part.text).join('') }
}
