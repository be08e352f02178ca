// The answers of /v1/completions.
import { type AnswerFormat, type AnswerHead, tokenUsage } from './answer-format.ts'
import { serverError } from './openai-error.ts'

/** Creates the format of one answer; `includeUsage` adds the usage chunk to a stream. */
export function createCompletionsFormat(head: AnswerHead, options: { readonly includeUsage: boolean }): AnswerFormat {
  const envelope = {
    id: `cmpl-${head.key}`,
    object: 'text_completion',
    created: head.createdSeconds,
    model: head.model,
  }
  const choice = (text: string, finishReason: string | null) => ({
    index: 0,
    text,
    logprobs: null,
    finish_reason: finishReason,
  })
  const usageInEveryChunk = options.includeUsage ? { usage: null } : {}
  const chunk = (text: string, finishReason: string | null) => ({
    data: { ...envelope, choices: [choice(text, finishReason)], ...usageInEveryChunk },
  })
  return {
    whole: (end) => ({ ...envelope, choices: [choice(end.text, end.finishReason)], usage: tokenUsage(head, end) }),
    streamStart: () => [],
    streamText: (text) => [chunk(text, null)],
    streamEnd: (end) => [
      chunk('', end.finishReason),
      ...(options.includeUsage ? [{ data: { ...envelope, choices: [], usage: tokenUsage(head, end) } }] : []),
      { data: '[DONE]' },
    ],
    streamFault: (message) => [{ data: { error: serverError(message).error } }],
  }
}
