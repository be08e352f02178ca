// The answers of /v1/messages, Anthropic's interface.
import { type AnswerFormat, namedEvent, uniqueKey } from './answer-format.ts'
import type { Answer, PromptCounts } from './engine.ts'

/** The format of one answer. As in vLLM, one that a stop string ended has ended its turn. */
export const createMessageFormat = ({ model }: { readonly model: string }): AnswerFormat => {
  const message = { id: `msg_${uniqueKey()}`, type: 'message', role: 'assistant', model }
  // What is read from the cache is not among the input tokens.
  const usage = ({ promptTokens, cachedTokens }: PromptCounts, outputTokens: number) => ({
    input_tokens: promptTokens - cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
  })
  const end = ({ finishReason }: Answer) => {
    return { stop_reason: finishReason === 'length' ? 'max_tokens' : 'end_turn', stop_sequence: null }
  }
  const event = (type: string, fields: object): string => namedEvent(type, { type, ...fields })
  return {
    whole: (answer) => ({
      ...message,
      content: [{ type: 'text', text: answer.text }],
      ...end(answer),
      usage: usage(answer, answer.completionTokens),
    }),
    streamStart: (prompt) => {
      const empty = { ...message, content: [], stop_reason: null, stop_sequence: null, usage: usage(prompt, 0) }
      return (
        event('message_start', { message: empty }) +
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
        event('ping', {})
      )
    },
    streamText: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    streamEnd: (answer) =>
      event('content_block_stop', { index: 0 }) +
      event('message_delta', { delta: end(answer), usage: usage(answer, answer.completionTokens) }) +
      event('message_stop', {}),
  }
}
