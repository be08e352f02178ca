// The answers of /v1/responses. As in vLLM, a stream always closes with `response.completed`; whether the answer was
// cut at its token limit stands in the response's own status.
import type { AnswerEnd, AnswerFormat, AnswerHead, ServerEvent } from './answer-format.ts'

/** What the answer repeats of the request. */
export interface ResponsesEcho {
  readonly instructions: string | undefined
  readonly maxOutputTokens: number
  readonly temperature: number
  readonly topP: number
}

/** Creates the format of one answer. */
export const createResponsesFormat = (head: AnswerHead, echo: ResponsesEcho): AnswerFormat => {
  const itemId = `msg_${head.key}`
  const place = { item_id: itemId, output_index: 0, content_index: 0 }
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const item = (status: string, content: readonly unknown[]) => ({
    id: itemId,
    type: 'message',
    status,
    role: 'assistant',
    content,
  })
  const finishedItem = (end: AnswerEnd) => item(statusOf(end), [part(end.text)])
  const finished = (end: AnswerEnd) => ({
    ...responseEnvelope(head, echo),
    status: statusOf(end),
    incomplete_details: end.finishReason === 'length' ? { reason: 'max_output_tokens' } : null,
    output: [finishedItem(end)],
    usage: {
      input_tokens: head.promptTokens,
      input_tokens_details: { cached_tokens: head.cachedTokens },
      output_tokens: end.completionTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: head.promptTokens + end.completionTokens,
    },
  })
  const unfinished = responseEnvelope(head, echo)
  let sequenceNumber = 0
  const event = (name: string, fields: object): ServerEvent => {
    const data = { type: name, sequence_number: sequenceNumber, ...fields }
    sequenceNumber += 1
    return { name, data }
  }
  return {
    whole: finished,
    streamStart: () => [
      event('response.created', { response: unfinished }),
      event('response.in_progress', { response: unfinished }),
      event('response.output_item.added', { output_index: 0, item: item('in_progress', []) }),
      event('response.content_part.added', { ...place, part: part('') }),
    ],
    streamText: (text) => [event('response.output_text.delta', { ...place, delta: text, logprobs: [] })],
    streamEnd: (end) => [
      event('response.output_text.done', { ...place, text: end.text, logprobs: [] }),
      event('response.content_part.done', { ...place, part: part(end.text) }),
      event('response.output_item.done', { output_index: 0, item: finishedItem(end) }),
      event('response.completed', { response: finished(end) }),
    ],
    streamFault: (message) => [event('error', { code: 'server_error', message, param: null })],
  }
}

const statusOf = (end: AnswerEnd): 'completed' | 'incomplete' =>
  end.finishReason === 'length' ? 'incomplete' : 'completed'

/** A response that is not finished. */
const responseEnvelope = (head: AnswerHead, echo: ResponsesEcho) => ({
  id: `resp_${head.key}`,
  object: 'response',
  created_at: head.createdSeconds,
  status: 'in_progress',
  model: head.model,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: echo.instructions ?? null,
  max_output_tokens: echo.maxOutputTokens,
  metadata: {},
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: false,
  temperature: echo.temperature,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: echo.topP,
  truncation: 'disabled',
  usage: null,
  user: null,
})
