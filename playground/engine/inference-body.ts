// Reads the bodies of the three inference interfaces into one form.
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { GenerationRequest } from './engine.ts'
import { EngineError } from './exchange.ts'
import type { LlamaRuntime } from './llama-runtime.ts'

export type InferenceApi = 'completions' | 'chat' | 'responses'

/** An inference request, whichever interface it came through. */
export interface InferenceBody {
  readonly model: string
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly request: Omit<GenerationRequest, 'signal'>
}

/** Null counts as absent, as in OpenAI's interface. */
const optional = <Value, Fallback>(schema: z.ZodType<Value>, fallback: Fallback) =>
  schema.nullish().transform((value) => value ?? fallback)

const seedLimit = 2 ** 32
const tokenCount = optional(z.int().min(1), undefined)
const prompt = z.union([z.string(), z.array(z.int().min(0)).min(1)])
const parts = z.array(z.looseObject({ text: z.string() })).transform((all) => all.map((part) => part.text).join(''))
const messages = z.array(z.object({ role: z.string(), content: optional(z.union([z.string(), parts]), '') })).min(1)

const schema = z.object({
  model: z.string().min(1),
  prompt: z.union([prompt, z.tuple([prompt]).transform(([only]) => only)]).optional(),
  messages: messages.optional(),
  input: z.union([z.string().transform((content) => [{ role: 'user', content }]), messages]).optional(),
  instructions: optional(z.string(), undefined),
  stream: optional(z.boolean(), false),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean(), false) }), { include_usage: false }),
  max_tokens: tokenCount,
  max_completion_tokens: tokenCount,
  max_output_tokens: tokenCount,
  stop: optional(z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]), []),
  temperature: optional(z.number().min(0).max(2), 1),
  top_p: optional(z.number().gt(0).max(1), 1),
  top_k: optional(z.int().min(-1), 0),
  min_p: optional(z.number().min(0).max(1), 0),
  seed: optional(z.int(), undefined),
  id_slot: optional(z.int().min(-1), -1),
  n_keep: optional(z.int(), 0),
  cache_prompt: optional(z.boolean(), true),
})

const promptFields = { completions: 'prompt', chat: 'messages', responses: 'input' } as const

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
  const slotId = body.id_slot === -1 ? undefined : body.id_slot
  if (slotId !== undefined && llama.sequences[slotId] === undefined) throw invalid(`There is no slot ${slotId}.`)
  const tokens = promptTokens(body, llama)
  if (tokens.length === 0) throw invalid('The prompt is empty.')
  if (tokens.some((token) => token >= llama.vocabularySize)) throw invalid('A token id is outside the vocabulary.')
  const limit = body.max_output_tokens ?? body.max_completion_tokens ?? body.max_tokens
  const room = llama.contextTokens - tokens.length
  if (room < (limit ?? 1)) {
    const sizes = `of ${tokens.length} tokens, with ${limit ?? 1} more, exceeds the context of ${llama.contextTokens}`
    throw invalid(`The prompt ${sizes}.`)
  }
  return {
    model: body.model,
    stream: body.stream,
    includeUsage: body.stream_options.include_usage,
    request: {
      tokens,
      maxTokens: limit ?? Math.min(defaultMaxTokens, room),
      sampling: {
        temperature: body.temperature,
        topP: body.top_p,
        topK: Math.max(body.top_k, 0),
        minP: body.min_p,
        seed: (body.seed ?? randomInt(seedLimit)) >>> 0,
      },
      stops: [body.stop].flat(),
      slotId,
      keep: body.n_keep,
      cachePrompt: body.cache_prompt,
    },
  }
}

const invalid = (message: string): EngineError => new EngineError(400, message)

const promptTokens = (body: z.infer<typeof schema>, llama: LlamaRuntime): readonly number[] => {
  if (typeof body.prompt === 'string') return llama.tokenize(body.prompt)
  if (body.prompt !== undefined) return body.prompt
  const system = body.instructions === undefined ? [] : [{ role: 'system', content: body.instructions }]
  return llama.tokenizeChat([...system, ...(body.input ?? body.messages ?? [])])
}
