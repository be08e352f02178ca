// The answers of /v1/completions, /v1/chat/completions and /v1/responses, whole and as server-sent events.
import { randomUUID } from 'node:crypto'
import type { FinishReason } from './answer-text.ts'
import type { Answer } from './engine.ts'

/** Writes one answer in the form of its interface. */
export interface AnswerFormat {
  /** The answer to a request that is not streamed. */
  whole(answer: Answer): object
  /** Events in front of the first text. */
  streamStart(): string
  streamText(text: string): string
  streamEnd(answer: Answer): string
}

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
    return `event: ${type}\n${dataLine({ type, sequence_number: sequenceNumber, ...fields })}`
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

const dataLine = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
const uniqueKey = (): string => randomUUID().replaceAll('-', '')
const nowSeconds = (): number => Math.floor(Date.now() / 1000)
