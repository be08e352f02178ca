import { describe, expect, test } from '@jest/globals'
import {
  type AnswerEnd,
  type AnswerFormat,
  type AnswerHead,
  createAnswerFormat,
} from '../../../../playground/engine/answer-format.ts'
import { createResponsesFormat } from '../../../../playground/engine/responses-format.ts'

const head: AnswerHead = { key: 'k', model: 'm', createdSeconds: 1, promptTokens: 10, cachedTokens: 9 }
const end: AnswerEnd = { text: 'ab', finishReason: 'stop', completionTokens: 2 }
const cut: AnswerEnd = { ...end, finishReason: 'length' }
const usage = {
  prompt_tokens: 10,
  completion_tokens: 2,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 9 },
}
const responsesUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 9 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 12,
}
const echo = { instructions: undefined, maxOutputTokens: 5, temperature: 1, topP: 1 }

function stream(format: AnswerFormat, last = end) {
  return [...format.streamStart(), ...format.streamText('a'), ...format.streamText('b'), ...format.streamEnd(last)]
}

describe('completions', () => {
  test('answers whole', () => {
    expect(createAnswerFormat('completions', head, { includeUsage: false }).whole(end)).toEqual({
      id: 'cmpl-k',
      object: 'text_completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, text: 'ab', logprobs: null, finish_reason: 'stop' }],
      usage,
    })
  })

  test('streams without usage unless asked', () => {
    const events = stream(createAnswerFormat('completions', head, { includeUsage: false })).map(({ data }) => data)
    expect(events).toMatchObject([
      { choices: [{ text: 'a', finish_reason: null }] },
      { choices: [{ text: 'b', finish_reason: null }] },
      { choices: [{ text: '', finish_reason: 'stop' }] },
      '[DONE]',
    ])
    expect(JSON.stringify(events)).not.toContain('usage')
  })

  test('streams usage in a chunk of its own', () => {
    const events = stream(createAnswerFormat('completions', head, { includeUsage: true })).map(({ data }) => data)
    expect(events.slice(-2)).toMatchObject([{ choices: [], usage }, '[DONE]'])
    expect(events[0]).toHaveProperty('usage', null)
  })
})

describe('chat', () => {
  test('answers whole', () => {
    expect(createAnswerFormat('chat', head, { includeUsage: false }).whole(cut)).toMatchObject({
      id: 'chatcmpl-k',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'length' }],
      usage,
    })
  })

  test('streams the role, the text and the reason, and usage when asked', () => {
    expect(stream(createAnswerFormat('chat', head, { includeUsage: true })).map(({ data }) => data)).toMatchObject([
      { object: 'chat.completion.chunk', choices: [{ delta: { role: 'assistant', content: '' } }] },
      { choices: [{ delta: { content: 'a' }, finish_reason: null }] },
      { choices: [{ delta: { content: 'b' }, finish_reason: null }] },
      { choices: [{ delta: {}, finish_reason: 'stop' }] },
      { choices: [], usage },
      '[DONE]',
    ])
  })
})

describe('responses', () => {
  test('answers whole', () => {
    expect(createResponsesFormat(head, echo).whole(end)).toMatchObject({
      id: 'resp_k',
      object: 'response',
      status: 'completed',
      incomplete_details: null,
      output: [{ id: 'msg_k', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ab' }] }],
      usage: responsesUsage,
    })
  })

  test('says that an answer was cut', () => {
    expect(createResponsesFormat(head, echo).whole(cut)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    })
  })

  test('streams named, numbered events and closes with the whole response', () => {
    const events = stream(createResponsesFormat(head, echo))
    expect(events.map(({ name }) => name)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map(({ data }) => data)).toMatchObject(
      events.map(({ name }, index) => ({ type: name, sequence_number: index })),
    )
    expect(events.at(-1)?.data).toMatchObject({ response: { status: 'completed', usage: responsesUsage } })
  })
})

test.each([
  [
    'completions',
    createAnswerFormat('completions', head, { includeUsage: false }),
    { error: { type: 'server_error', message: 'no' } },
  ],
  [
    'chat',
    createAnswerFormat('chat', head, { includeUsage: false }),
    { error: { type: 'server_error', message: 'no' } },
  ],
  ['responses', createResponsesFormat(head, echo), { type: 'error', message: 'no' }],
])('%s tell of a fault in the middle of a stream', (_, format, expected) => {
  expect(format.streamFault('no')).toMatchObject([{ data: expected }])
})
