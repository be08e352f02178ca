// The answers of /v1/completions and /v1/chat/completions; those of /v1/responses lie beside them.
import type { FinishReason } from './answer-text.ts'
import { serverError } from './openai-error.ts'

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
  /** Events that tell of a fault in the middle of a stream. */
  streamFault(message: string): readonly ServerEvent[]
}

type Choice = Readonly<Record<string, unknown>>

interface Interface {
  readonly idPrefix: string
  readonly object: string
  readonly chunkObject: string
  /** The choice's own member in a whole answer. */
  readonly said: (text: string) => Choice
  /** The same in an event of a stream; undefined text in the last one. */
  readonly piece: (text: string | undefined) => Choice
  /** In the first event. */
  readonly opening: Choice | undefined
}

const completions: Interface = {
  idPrefix: 'cmpl',
  object: 'text_completion',
  chunkObject: 'text_completion',
  said: (text) => ({ text }),
  piece: (text = '') => ({ text }),
  opening: undefined,
}

const chat: Interface = {
  idPrefix: 'chatcmpl',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  said: (text) => ({ message: { role: 'assistant', content: text, refusal: null } }),
  piece: (text) => ({ delta: text === undefined ? {} : { content: text } }),
  opening: { delta: { role: 'assistant', content: '' } },
}

/** Creates the format of one answer; `includeUsage` adds the usage chunk to a stream. */
export const createAnswerFormat = (
  api: 'completions' | 'chat',
  head: AnswerHead,
  options: { readonly includeUsage: boolean },
): AnswerFormat => {
  const form = api === 'chat' ? chat : completions
  const common = { id: `${form.idPrefix}-${head.key}`, created: head.createdSeconds, model: head.model }
  const choice = (own: Choice, finishReason: FinishReason | null) => ({
    index: 0,
    ...own,
    logprobs: null,
    finish_reason: finishReason,
  })
  const usageInEveryChunk = options.includeUsage ? { usage: null } : {}
  const chunkOf = (own: Choice, finishReason: FinishReason | null = null): ServerEvent => ({
    data: { ...common, object: form.chunkObject, choices: [choice(own, finishReason)], ...usageInEveryChunk },
  })
  return {
    whole: (end) => ({
      ...common,
      object: form.object,
      choices: [choice(form.said(end.text), end.finishReason)],
      usage: tokenUsage(head, end),
    }),
    streamStart: () => (form.opening === undefined ? [] : [chunkOf(form.opening)]),
    streamText: (text) => [chunkOf(form.piece(text))],
    streamEnd: (end) => [
      chunkOf(form.piece(undefined), end.finishReason),
      ...(options.includeUsage
        ? [{ data: { ...common, object: form.chunkObject, choices: [], usage: tokenUsage(head, end) } }]
        : []),
      { data: '[DONE]' },
    ],
    streamFault: (message) => [{ data: { error: serverError(message).error } }],
  }
}

const tokenUsage = ({ promptTokens, cachedTokens }: AnswerHead, { completionTokens }: AnswerEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
})
