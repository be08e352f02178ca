// The answers of /v1/completions and /v1/chat/completions.
import { type AnswerFormat, dataLine, nowSeconds, uniqueKey } from './answer-format.ts'
import type { FinishReason } from './answer-text.ts'
import type { Answer } from './engine.ts'

/** The format of one answer of /v1/completions or /v1/chat/completions; `includeUsage` adds usage to a stream. */
export const createCompletionFormat = (
  api: 'completions' | 'chat',
  { model, includeUsage }: { readonly model: string; readonly includeUsage: boolean },
): AnswerFormat => {
  const isChat = api === 'chat'
  const common = { id: `${isChat ? 'chatcmpl' : 'cmpl'}-${uniqueKey()}`, created: nowSeconds(), model }
  const chunk = { ...common, object: isChat ? 'chat.completion.chunk' : 'text_completion' }
  const choice = (content: object, finishReason: FinishReason | null) => {
    return { index: 0, ...content, logprobs: null, finish_reason: finishReason }
  }
  const event = (content: object, finishReason: FinishReason | null = null): string =>
    dataLine({ ...chunk, choices: [choice(content, finishReason)], ...(includeUsage ? { usage: null } : {}) })
  const usageOf = ({ promptTokens, cachedTokens, completionTokens }: Answer) => ({
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  })
  return {
    whole: (answer) => {
      const { text } = answer
      const content = isChat ? { message: { role: 'assistant', content: text, refusal: null } } : { text }
      const object = isChat ? 'chat.completion' : 'text_completion'
      return { ...common, object, choices: [choice(content, answer.finishReason)], usage: usageOf(answer) }
    },
    streamStart: () => (isChat ? event({ delta: { role: 'assistant', content: '' } }) : ''),
    streamText: (text) => event(isChat ? { delta: { content: text } } : { text }),
    streamEnd: (answer) => {
      const last = event(isChat ? { delta: {} } : { text: '' }, answer.finishReason)
      const usage = includeUsage ? dataLine({ ...chunk, choices: [], usage: usageOf(answer) }) : ''
      return `${last}${usage}data: [DONE]\n\n`
    },
  }
}
