// The answers of /v1/completions and /v1/chat/completions; those of /v1/responses lie beside them.
import type { FinishReason } from './answer-text.ts'
import { serverError } from './exchange.ts'

/** Facts about an answer that are known before its first token. */
export interface AnswerHead {
  /** Unique part of the ids in the answer. */
  readonly key: string
  readonly model: string
  readonly createdSeconds: number
  readonly promptTokens: number
  /** Prompt tokens whose KV was there already. */
  readonly cachedTokens: number
}

/** Facts about an answer that are known at its end. */
export interface AnswerEnd {
  /** The whole text. */
  readonly text: string
  readonly finishReason: FinishReason
  readonly completionTokens: number
}

/** One server-sent event. */
export interface ServerEvent {
  /** Only /v1/responses names its events. */
  readonly name?: string
  readonly data: Readonly<Record<string, unknown>> | '[DONE]'
}

/** Writes one answer in the form of its interface. */
export interface AnswerFormat {
  /** The whole answer, for a request that is not streamed. */
  whole(end: AnswerEnd): Readonly<Record<string, unknown>>
  /** Events in front of the first text. */
  streamStart(): readonly ServerEvent[]
  streamText(text: string): readonly ServerEvent[]
  streamEnd(end: AnswerEnd): readonly ServerEvent[]
  /** Events that report a fault in the middle of a stream. */
  streamFault(message: string): readonly ServerEvent[]
}

/** Creates the format of one answer; `includeUsage` adds the usage chunk to a stream. */
export const createAnswerFormat = (
  api: 'completions' | 'chat',
  head: AnswerHead,
  options: { readonly includeUsage: boolean },
): AnswerFormat => {
  const isChat = api === 'chat'
  const common = { id: `${isChat ? 'chatcmpl' : 'cmpl'}-${head.key}`, created: head.createdSeconds, model: head.model }
  const chunk = { ...common, object: isChat ? 'chat.completion.chunk' : 'text_completion' }
  const choice = (content: object, finishReason: FinishReason | null) => ({
    index: 0,
    ...content,
    logprobs: null,
    finish_reason: finishReason,
  })
  const event = (content: object, finishReason: FinishReason | null = null): ServerEvent => ({
    data: { ...chunk, choices: [choice(content, finishReason)], ...(options.includeUsage ? { usage: null } : {}) },
  })
  return {
    whole: (end) => {
      const content = isChat ? { message: { role: 'assistant', content: end.text, refusal: null } } : { text: end.text }
      const object = isChat ? 'chat.completion' : 'text_completion'
      return { ...common, object, choices: [choice(content, end.finishReason)], usage: tokenUsage(head, end) }
    },
    streamStart: () => (isChat ? [event({ delta: { role: 'assistant', content: '' } })] : []),
    streamText: (text) => [event(isChat ? { delta: { content: text } } : { text })],
    streamEnd: (end) => [
      event(isChat ? { delta: {} } : { text: '' }, end.finishReason),
      ...(options.includeUsage ? [{ data: { ...chunk, choices: [], usage: tokenUsage(head, end) } }] : []),
      { data: '[DONE]' },
    ],
    streamFault: (message) => [{ data: { error: serverError(message).body } }],
  }
}

const tokenUsage = ({ promptTokens, cachedTokens }: AnswerHead, { completionTokens }: AnswerEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
})
