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
export function createResponsesFormat(head: AnswerHead, echo: ResponsesEcho): AnswerFormat {
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
  const unfinished = {
    ...responseEnvelope(head, echo),
    status: 'in_progress',
    incomplete_details: null,
    output: [],
    usage: null,
  }
  const finished = (end: AnswerEnd) => ({
    ...responseEnvelope(head, echo),
    status: statusOf(end),
    incomplete_details: end.finishReason === 'length' ? { reason: 'max_output_tokens' } : null,
    output: [item(statusOf(end), [part(end.text)])],
    usage: responsesUsage(head, end),
  })
  const event = createEventCounter()
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
      event('response.output_item.done', { output_index: 0, item: item(statusOf(end), [part(end.text)]) }),
      event('response.completed', { response: finished(end) }),
    ],
    streamFault: (message) => [event('error', { code: 'server_error', message, param: null })],
  }
}

function createEventCounter() {
  let sequenceNumber = 0
  return (name: string, fields: Readonly<Record<string, unknown>>): ServerEvent => {
    const data = { type: name, sequence_number: sequenceNumber, ...fields }
    sequenceNumber += 1
    return { name, data }
  }
}

function statusOf(end: AnswerEnd): 'completed' | 'incomplete' {
  return end.finishReason === 'length' ? 'incomplete' : 'completed'
}

function responseEnvelope(head: AnswerHead, echo: ResponsesEcho) {
  return {
    id: `resp_${head.key}`,
    object: 'response',
    created_at: head.createdSeconds,
    model: head.model,
    background: false,
    error: null,
    instructions: echo.instructions ?? null,
    max_output_tokens: echo.maxOutputTokens,
    metadata: {},
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
    user: null,
  }
}

function responsesUsage({ promptTokens, cachedTokens }: AnswerHead, { completionTokens }: AnswerEnd) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
  }
}
