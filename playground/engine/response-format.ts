// The answers of /v1/responses.
import { type AnswerFormat, namedEvent, nowSeconds, uniqueKey } from './answer-format.ts'
import type { Answer } from './engine.ts'

/**
 * Creates the format of one answer of /v1/responses. As in vLLM, a stream always closes with `response.completed`;
 * whether the answer was cut at its token limit stands in the response's own status.
 */
export const createResponseFormat = ({ model }: { readonly model: string }): AnswerFormat => {
  const key = uniqueKey()
  const itemId = `msg_${key}`
  const place = { item_id: itemId, output_index: 0, content_index: 0 }
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const item = (status: string, content: readonly object[]) => {
    return { id: itemId, type: 'message', status, role: 'assistant', content }
  }
  const unfinished = {
    id: `resp_${key}`,
    object: 'response',
    created_at: nowSeconds(),
    status: 'in_progress',
    model,
    error: null,
    incomplete_details: null,
    output: [] as readonly object[],
    usage: null,
  }
  const statusOf = ({ finishReason }: Answer) => (finishReason === 'length' ? 'incomplete' : 'completed')
  const itemOf = (answer: Answer) => item(statusOf(answer), [part(answer.text)])
  const whole = (answer: Answer): object => ({
    ...unfinished,
    status: statusOf(answer),
    incomplete_details: answer.finishReason === 'length' ? { reason: 'max_output_tokens' } : null,
    output: [itemOf(answer)],
    usage: {
      input_tokens: answer.promptTokens,
      input_tokens_details: { cached_tokens: answer.cachedTokens },
      output_tokens: answer.completionTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: answer.promptTokens + answer.completionTokens,
    },
  })
  let sequenceNumber = -1
  const event = (type: string, fields: object): string => {
    sequenceNumber += 1
    return namedEvent(type, { type, sequence_number: sequenceNumber, ...fields })
  }
  return {
    whole,
    streamStart: () =>
      event('response.created', { response: unfinished }) +
      event('response.in_progress', { response: unfinished }) +
      event('response.output_item.added', { output_index: 0, item: item('in_progress', []) }) +
      event('response.content_part.added', { ...place, part: part('') }),
    streamText: (text) => event('response.output_text.delta', { ...place, delta: text, logprobs: [] }),
    streamEnd: (answer) =>
      event('response.output_text.done', { ...place, text: answer.text, logprobs: [] }) +
      event('response.content_part.done', { ...place, part: part(answer.text) }) +
      event('response.output_item.done', { output_index: 0, item: itemOf(answer) }) +
      event('response.completed', { response: whole(answer) }),
  }
}
