import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createAnswerReader } from '../../../src/openai/answer-reader.ts'
import { piecesOf } from '../../support/pieces-of.ts'

const stream = 'text/event-stream; charset=utf-8'
const usage = '"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}'
const counts = { promptTokens: 10, outputTokens: 2, cachedTokens: 8 }
const token = 'data: {"choices":[{"text":"a \\"usage\\":{}"}],"usage":null}\n\n'

const rows: readonly (readonly [string, { readonly type: string; readonly text: string }, object])[] = [
  ['JSON', { type: 'application/json', text: `{"id":1,${usage},"x":"${'y'.repeat(9000)}"}` }, { usage: counts }],
  ['JSON without counts', { type: 'application/json', text: '{"usage":{}}' }, { usage: undefined }],
  [
    "llama-server's timings",
    { type: stream, text: `${token}data: {"timings":{"prompt_n":2,"predicted_n":2,"cache_n":8}}\n\ndata: [DONE]\n\n` },
    { usage: counts },
  ],
  ['another type', { type: 'text/plain', text: `{${usage}}` }, { usage: undefined }],
  ['a stream', { type: stream, text: `${token.repeat(9)}data: {${usage}}\n\ndata: [DONE]\n\n` }, { usage: counts }],
  ['a stream with CRLF', { type: stream, text: `data:{${usage}}\r\n\r\ndata:[DONE]\r\n\r\n` }, { usage: counts }],
  [
    'a stream of the responses API',
    { type: stream, text: `event: response.completed\ndata: {"response":{${usage}}}\n\n` },
    { usage: counts },
  ],
  [
    'a stream of the messages API',
    {
      type: stream,
      text:
        'event: message_start\ndata: {"message":{"usage":{"input_tokens":2,"cache_read_input_tokens":8,"output_tokens":1}}}\n\n' +
        'event: message_delta\ndata: {"usage":{"output_tokens":2}}\n\nevent: message_stop\ndata: {}\n\n',
    },
    { usage: counts },
  ],
  [
    'a stream of the messages API without its end',
    { type: stream, text: 'event: message_delta\ndata: {"usage":{"input_tokens":10,"output_tokens":2}}\n\n' },
    { isWhole: false, usage: { promptTokens: 10, outputTokens: 2 } },
  ],
  ['a failed message', { type: stream, text: 'event: error\ndata: {"type":"error"}\n\n' }, { isWhole: false }],
  ['a cut stream', { type: stream, text: `data: {${usage}}\n\ndata: [DO` }, { isWhole: false, usage: counts }],
  ['a stream with an error', { type: stream, text: 'data: {"error":{}}\n\ndata: [DONE]\n\n' }, { isWhole: false }],
  ['a failed response', { type: stream, text: 'event: response.failed\ndata: {}\n\n' }, { isWhole: false }],
  ['an error of llama-server', { type: stream, text: `${token}error: {"code":500}\n\n` }, { isWhole: false }],
]

test.each(rows)('%s is read, in whatever pieces it comes', (_name, { type, text }, result) => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 8 }), (ends) => {
      const reader = createAnswerReader(type, [])
      for (const piece of piecesOf(text, ends)) reader.chunk(piece)
      expect(reader.result()).toEqual({ isWhole: true, usage: undefined, ...result })
    }),
  )
})

test.each([
  [stream, false],
  ['application/json', true],
])('of an encoded answer nothing is read: %s', (type, isWhole) => {
  const reader = createAnswerReader(type, ['gzip'])
  reader.chunk(Buffer.from('data: [DONE]\n\n'))
  expect(reader.result()).toEqual({ isWhole, usage: undefined })
})
