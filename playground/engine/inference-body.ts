// Reads the bodies of the inference interfaces into one form.
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { type Body, invalid, optional, readFields } from './body-fields.ts'
import { readChatPrompt } from './chat-prompt.ts'
import type { GenerationRequest } from './engine.ts'
import type { LlamaRuntime } from './llama-runtime.ts'
import { readMessagesPrompt } from './messages-prompt.ts'
import { readResponsesPrompt } from './responses-prompt.ts'

export type InferenceApi = 'completions' | 'chat' | 'responses' | 'messages'

/** An inference request, whichever interface it came through. */
export interface InferenceBody {
  readonly model: string
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly request: Omit<GenerationRequest, 'signal'>
}

const seedLimit = 2 ** 32
const tokenCount = optional(z.int().min(1), undefined)

const schema = z.object({
  model: z.string().min(1),
  stream: optional(z.boolean(), false),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean(), false) }), { include_usage: false }),
  max_tokens: tokenCount,
  max_completion_tokens: tokenCount,
  max_output_tokens: tokenCount,
  stop: optional(z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]), []),
  stop_sequences: optional(z.array(z.string().min(1)), []),
  ignore_eos: optional(z.boolean(), false),
  temperature: optional(z.number().min(0).max(2), 1),
  top_p: optional(z.number().gt(0).max(1), 1),
  top_k: optional(z.int().min(-1), 0),
  min_p: optional(z.number().min(0).max(1), 0),
  seed: optional(z.int(), undefined),
  id_slot: optional(z.int().min(-1), -1),
  n_keep: optional(z.int(), 0),
  cache_prompt: optional(z.boolean(), true),
})

/** `value` is the JSON object that was sent. @throws EngineError */
export const parseInferenceBody = (api: InferenceApi, value: Body, llama: LlamaRuntime): InferenceBody => {
  const body = readFields(schema, value)
  const slotId = body.id_slot === -1 ? undefined : body.id_slot
  if (slotId !== undefined && llama.sequences[slotId] === undefined) throw invalid(`There is no slot ${slotId}.`)
  const tokens = readPromptTokens(api, value, llama)
  const room = llama.contextTokens - tokens.length
  if (room < 1) {
    throw invalid(
      `The prompt of ${tokens.length} tokens, with 1 of an answer, exceeds the context of ${llama.contextTokens}.`,
    )
  }
  const limit = body.max_output_tokens ?? body.max_completion_tokens ?? body.max_tokens ?? llama.limits.defaultMaxTokens
  // As in llama-server, an answer ends where the context does.
  const allowed = Math.min(limit ?? room, room)
  const wanted = body.ignore_eos ? allowed : (llama.limits.answerTokens ?? allowed)
  return {
    model: body.model,
    stream: body.stream,
    includeUsage: body.stream_options.include_usage,
    request: {
      tokens,
      maxTokens: Math.min(wanted, allowed),
      reasonAtMax: wanted < allowed ? 'stop' : 'length',
      sampling: {
        temperature: body.temperature,
        topP: body.top_p,
        topK: Math.max(body.top_k, 0),
        minP: body.min_p,
        seed: (body.seed ?? randomInt(seedLimit)) >>> 0,
      },
      stops: [body.stop, body.stop_sequences].flat(),
      slotId,
      keep: body.n_keep,
      cachePrompt: body.cache_prompt,
    },
  }
}

/** The prompt of a body, at least one token. @throws EngineError */
export const readPromptTokens = (api: InferenceApi, value: Body, llama: LlamaRuntime): readonly number[] => {
  const tokens = promptTokens(api, value, llama)
  if (tokens.length === 0) throw invalid('The prompt is empty.')
  if (tokens.some((token) => token >= llama.vocabularySize)) throw invalid('A token id is outside the vocabulary.')
  return tokens
}

const promptTokens = (api: InferenceApi, value: Body, llama: LlamaRuntime): readonly number[] => {
  switch (api) {
    case 'completions': {
      const { prompt } = readFields(completionSchema, value)
      return typeof prompt === 'string' ? llama.tokenize(prompt) : prompt
    }
    case 'chat':
      return llama.tokenizeChat(readChatPrompt(value))
    case 'responses':
      return llama.tokenizeChat(readResponsesPrompt(value))
    case 'messages':
      return llama.tokenizeChat(readMessagesPrompt(value))
  }
}

const prompt = z.union([z.string(), z.array(z.int().min(0)).min(1)])
const completionSchema = z.object({ prompt: z.union([prompt, z.tuple([prompt]).transform(([only]) => only)]) })
