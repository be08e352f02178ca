import * as z from 'zod'
import { chatText, tokenize } from './tokenizer.ts'

/** What an engine makes of a request body, whatever its form. */
export interface EngineWork {
  readonly model: string
  readonly prompt: readonly number[]
  readonly maxTokens: number
  readonly salt: string
  readonly sessionId: string | undefined
  /** Whether events report all of the request's blocks, also those that the engine's own cache had. */
  readonly reportsAll: boolean
}

const common = z.object({
  model: z.string(),
  cache_salt: z.string().min(1).optional(),
  session_id: z.string().optional(),
  vllm_xargs: z.record(z.string(), z.unknown()).optional(),
})
const message = z.object({ role: z.string(), content: z.string() })
const prompt = z.union([z.string(), z.array(z.int())])

const schemas = {
  '/v1/completions': common.extend({ prompt, max_tokens: z.int().default(16) }),
  '/v1/chat/completions': common.extend({ messages: z.array(message), max_tokens: z.int().default(16) }),
  '/v1/responses': common.extend({
    input: z.string(),
    instructions: z.string().optional(),
    max_output_tokens: z.int().default(16),
  }),
} as const

export type InferencePath = keyof typeof schemas

export const isInferencePath = (path: string): path is InferencePath => path in schemas

/** @throws when the body is not of its form */
export const workOf = (path: InferencePath, body: unknown, sessionHeader: string | undefined): EngineWork => {
  const rest = (parsed: z.infer<typeof common>) => ({
    model: parsed.model,
    salt: parsed.cache_salt ?? '',
    // Of two, the one in the body counts.
    sessionId: parsed.session_id ?? sessionHeader,
    reportsAll: parsed.vllm_xargs?.['kv_cache_report_mode'] === 'full',
  })
  switch (path) {
    case '/v1/completions': {
      const parsed = schemas[path].parse(body)
      return { ...rest(parsed), prompt: tokensOf(parsed.prompt), maxTokens: parsed.max_tokens }
    }
    case '/v1/chat/completions': {
      const parsed = schemas[path].parse(body)
      return { ...rest(parsed), prompt: tokenize(chatText(parsed.messages)), maxTokens: parsed.max_tokens }
    }
    case '/v1/responses': {
      const parsed = schemas[path].parse(body)
      const system = parsed.instructions === undefined ? [] : [{ role: 'system', content: parsed.instructions }]
      const messages = [...system, { role: 'user', content: parsed.input }]
      return { ...rest(parsed), prompt: tokenize(chatText(messages)), maxTokens: parsed.max_output_tokens }
    }
  }
}

const tokensOf = (value: string | readonly number[]): readonly number[] =>
  typeof value === 'string' ? tokenize(value) : value
