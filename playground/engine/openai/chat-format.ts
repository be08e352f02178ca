// The answers of /v1/chat/completions.
import { type AnswerFormat, type AnswerHead, tokenUsage } from './answer-format.ts'
import { serverError } from './openai-error.ts'

/** Creates the format of one answer; `includeUsage` adds the usage chunk to a stream. */
export function createChatFormat(head: AnswerHead, options: { readonly includeUsage: boolean }): AnswerFormat {
  const common = { id: `chatcmpl-${head.key}`, created: head.createdSeconds, model: head.model }
  const envelope = { ...common, object: 'chat.completion' }
  const chunkEnvelope = { ...common, object: 'chat.completion.chunk' }
  const usageInEveryChunk = options.includeUsage ? { usage: null } : {}
  const chunk = (delta: Readonly<Record<string, unknown>>, finishReason: string | null) => ({
    data: {
      ...chunkEnvelope,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...usageInEveryChunk,
    },
  })
  return {
    whole: (end) => ({
      ...envelope,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: end.text, refusal: null },
          logprobs: null,
          finish_reason: end.finishReason,
        },
      ],
      usage: tokenUsage(head, end),
    }),
    streamStart: () => [chunk({ role: 'assistant', content: '' }, null)],
    streamText: (text) => [chunk({ content: text }, null)],
    streamEnd: (end) => [
      chunk({}, end.finishReason),
      ...(options.includeUsage ? [{ data: { ...chunkEnvelope, choices: [], usage: tokenUsage(head, end) } }] : []),
      { data: '[DONE]' },
    ],
    streamFault: (message) => [{ data: { error: serverError(message).error } }],
  }
}
