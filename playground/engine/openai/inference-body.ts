// Reads the bodies of the three inference interfaces into one form.
import { z } from 'zod'
import type { ChatMessage } from '../prompt/chat-message.ts'
import { invalidRequest, type OpenAiError } from './openai-error.ts'

/** The three interfaces. */
export type InferenceApi = 'completions' | 'chat' | 'responses'

/** The prompt as the client gave it. */
export type PromptInput =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tokens'; readonly tokens: readonly number[] }
  | { readonly kind: 'messages'; readonly messages: readonly ChatMessage[] }

/** An inference request, whichever interface it came through. Undefined fields take the engine's defaults. */
export interface InferenceBody {
  readonly api: InferenceApi
  readonly model: string
  readonly prompt: PromptInput
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  readonly minP: number | undefined
  readonly seed: number | undefined
  readonly stops: readonly string[]
  readonly stream: boolean
  readonly includeUsage: boolean
  /** llama-server's own field: the slot to use. */
  readonly slotId: number | undefined
  /** vLLM's own field: keeps equal prefixes of different salts apart. Empty for none. */
  readonly cacheSalt: string
  /** Only /v1/responses has it, where it is repeated in the answer. */
  readonly instructions: string | undefined
}

/** What came of reading a body. */
export type InferenceBodyOutcome =
  | { readonly kind: 'parsed'; readonly body: InferenceBody }
  | { readonly kind: 'invalid'; readonly error: OpenAiError }

const maxStops = 4
const tokenCount = z.int().min(1)
const only = <Value extends boolean | number | string>(value: Value) =>
  z.literal(value, `only ${value === '' ? 'an empty string' : value} is supported`).nullish()

const commonFields = {
  model: z.string().min(1),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  seed: z.int().nullish(),
  id_slot: z.int().min(-1).nullish(),
  cache_salt: z.string().min(1).nullish(),
}

const stopField = z
  .union([z.string().min(1), z.array(z.string().min(1)).max(maxStops)], `give a string or up to ${maxStops} of them`)
  .nullish()
const streamOptionsField = z.looseObject({ include_usage: z.boolean().nullish() }).nullish()

const tokenList = z.array(z.int().min(0)).min(1)
const completionsSchema = z.looseObject({
  ...commonFields,
  prompt: z.union(
    [z.string(), tokenList, z.tuple([z.string()]), z.tuple([tokenList])],
    'give a string, a list of token ids, or a list with one of them',
  ),
  max_tokens: tokenCount.nullish(),
  stop: stopField,
  stream_options: streamOptionsField,
  n: only(1),
  best_of: only(1),
  echo: only(false),
  suffix: only(''),
})

const textPart = z.looseObject({
  type: z.enum(['text', 'input_text', 'output_text'], 'only text is supported'),
  text: z.string(),
})
const contentField = z.union([z.string(), z.array(textPart)], 'give a string or a list of text parts')
const roleField = z.enum(['system', 'developer', 'user', 'assistant', 'tool'])
const chatSchema = z.looseObject({
  ...commonFields,
  messages: z.array(z.looseObject({ role: roleField, content: contentField.nullish() })).min(1),
  max_tokens: tokenCount.nullish(),
  max_completion_tokens: tokenCount.nullish(),
  stop: stopField,
  stream_options: streamOptionsField,
  n: only(1),
})

const inputItem = z.looseObject({
  type: z.literal('message', 'only messages are supported').optional(),
  role: roleField,
  content: contentField,
})
const responsesSchema = z.looseObject({
  ...commonFields,
  input: z.union([z.string(), z.array(inputItem).min(1)], 'give a string or a list of messages'),
  instructions: z.string().nullish(),
  max_output_tokens: tokenCount.nullish(),
  background: only(false),
  previous_response_id: z.null('responses are not stored').optional(),
  conversation: z.null('conversations are not stored').optional(),
})

/** Reads the body of the given interface; `value` is what the JSON said. */
export function parseInferenceBody(api: InferenceApi, value: Readonly<Record<string, unknown>>): InferenceBodyOutcome {
  switch (api) {
    case 'completions':
      return read(completionsSchema, value, (body) => ({
        ...commonPart(api, body),
        prompt: completionsPrompt(body.prompt),
        maxTokens: body.max_tokens ?? undefined,
        stops: stopList(body.stop),
        includeUsage: body.stream_options?.include_usage ?? false,
        instructions: undefined,
      }))
    case 'chat':
      return read(chatSchema, value, (body) => ({
        ...commonPart(api, body),
        prompt: { kind: 'messages', messages: body.messages.map(toMessage) },
        maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
        stops: stopList(body.stop),
        includeUsage: body.stream_options?.include_usage ?? false,
        instructions: undefined,
      }))
    case 'responses':
      return read(responsesSchema, value, (body) => ({
        ...commonPart(api, body),
        prompt: { kind: 'messages', messages: responsesMessages(body.input, body.instructions ?? undefined) },
        maxTokens: body.max_output_tokens ?? undefined,
        stops: [],
        includeUsage: true,
        instructions: body.instructions ?? undefined,
      }))
  }
}

function read<Body>(
  schema: z.ZodType<Body>,
  value: Readonly<Record<string, unknown>>,
  convert: (body: Body) => InferenceBody,
): InferenceBodyOutcome {
  const result = schema.safeParse(value)
  if (result.success) return { kind: 'parsed', body: convert(result.data) }
  const issue = result.error.issues[0]
  const param = issue?.path.join('.') ?? ''
  const isMissing = issue?.path.length === 1 && (value[param] === undefined || value[param] === null)
  const error = isMissing
    ? invalidRequest(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' })
    : invalidRequest(`Invalid value for '${param}': ${issue?.message}.`, { param, code: 'invalid_value' })
  return { kind: 'invalid', error }
}

function commonPart(api: InferenceApi, body: z.infer<z.ZodObject<typeof commonFields>>) {
  const { id_slot: slotId, top_k: topK } = body
  return {
    api,
    model: body.model,
    stream: body.stream ?? false,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    topK: topK === null || topK === -1 ? undefined : topK,
    minP: body.min_p ?? undefined,
    seed: body.seed ?? undefined,
    slotId: slotId === null || slotId === -1 ? undefined : slotId,
    cacheSalt: body.cache_salt ?? '',
  }
}

function completionsPrompt(prompt: z.infer<typeof completionsSchema>['prompt']): PromptInput {
  if (typeof prompt === 'string') return { kind: 'text', text: prompt }
  const [first] = prompt
  if (typeof first === 'string') return { kind: 'text', text: first }
  if (Array.isArray(first)) return { kind: 'tokens', tokens: first }
  return { kind: 'tokens', tokens: prompt.filter((token) => typeof token === 'number') }
}

function responsesMessages(
  input: z.infer<typeof responsesSchema>['input'],
  instructions: string | undefined,
): readonly ChatMessage[] {
  const system: readonly ChatMessage[] = instructions === undefined ? [] : [{ role: 'system', content: instructions }]
  const messages: readonly ChatMessage[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : input.map(toMessage)
  return [...system, ...messages]
}

function toMessage(message: {
  role: ChatMessage['role']
  content?: z.infer<typeof contentField> | null | undefined
}): ChatMessage {
  const { role, content } = message
  if (typeof content === 'string') return { role, content }
  return { role, content: (content ?? []).map((part) => part.text).join('') }
}

function stopList(stop: z.infer<typeof stopField>): readonly string[] {
  if (stop === null || stop === undefined) return []
  return typeof stop === 'string' ? [stop] : stop
}
