import { z } from 'zod'
import { type PromptInput, parseInferenceBody } from './inference-body.ts'
import { invalidRequest, type OpenAiError } from './openai-error.ts'

/** What came of reading the body of POST /tokenize. */
export type TokenizeBodyOutcome =
  | {
      readonly kind: 'parsed'
      /** Whose form of answer is wanted. */
      readonly form: 'llama-server' | 'vllm'
      readonly prompt: PromptInput
      readonly model: string | undefined
    }
  | { readonly kind: 'invalid'; readonly error: OpenAiError }

const llamaServerSchema = z.looseObject({ content: z.string() })
const modelSchema = z.looseObject({ model: z.string().optional() })

/** Reads it: llama-server's has `content`, vLLM's has `prompt` or `messages`. */
export function parseTokenizeBody(value: Readonly<Record<string, unknown>>): TokenizeBodyOutcome {
  const llamaServer = llamaServerSchema.safeParse(value)
  if (llamaServer.success) {
    return {
      kind: 'parsed',
      form: 'llama-server',
      prompt: { kind: 'text', text: llamaServer.data.content },
      model: undefined,
    }
  }
  const api = value['messages'] === undefined ? 'completions' : 'chat'
  const model = modelSchema.safeParse(value).data?.model
  const parsed = parseInferenceBody(api, { ...value, model: model ?? 'any' })
  if (parsed.kind === 'parsed') return { kind: 'parsed', form: 'vllm', prompt: parsed.body.prompt, model }
  const message = `Give 'content', 'prompt' or 'messages'. ${parsed.error.error.message}`
  return {
    kind: 'invalid',
    error: invalidRequest(message, { param: parsed.error.error.param ?? 'prompt', code: 'invalid_value' }),
  }
}
