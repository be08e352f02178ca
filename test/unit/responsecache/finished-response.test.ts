import { describe, expect, test } from '@jest/globals'
import { createResponseCheck } from '../../../src/responsecache/finished-response.ts'

const usage = { promptTokens: 5, outputTokens: 2, cachedTokens: 1 }
const chatUsage = { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } }
const responseUsage = { input_tokens: 5, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } }
const timings = { prompt_n: 4, cache_n: 1, predicted_n: 2 }
const choices = [{ index: 0, text: 'a', finish_reason: 'stop' }]

const read = (form: 'json' | 'stream', text: string | Buffer) => {
  const check = createResponseCheck(form)
  const body = Buffer.from(text)
  check.chunk(body)
  return check.end(body)
}

describe('a JSON response', () => {
  test.each([
    ['of a completion', { choices, usage: chatUsage }, { usage }],
    ['of a response', { status: 'completed', usage: responseUsage }, { usage }],
    ['of a response at its token limit', { status: 'incomplete', usage: responseUsage }, { usage }],
    ['with the counts of llama-server', { choices, timings }, { usage }],
    ['that counts nothing', { choices, usage: null }, { usage: undefined }],
    ['with no error', { choices, error: null }, { usage: undefined }],
  ])('is whole: %s', (_name, answer, expected) => {
    expect(read('json', JSON.stringify(answer))).toEqual(expected)
  })

  test.each([
    ['cut', JSON.stringify({ choices, usage: chatUsage }).slice(0, -1)],
    ['empty', ''],
    ['no object', '"stop"'],
    ['an error', JSON.stringify({ error: { message: 'no' } })],
    ['an error beside choices', JSON.stringify({ choices, error: { message: 'no' } })],
    ['without choices', JSON.stringify({ choices: [] })],
    ['a choice that goes on', JSON.stringify({ choices: [{ finish_reason: null }] })],
    ['a choice that was given up', JSON.stringify({ choices: [...choices, { finish_reason: 'abort' }] })],
    ['a failed response', JSON.stringify({ status: 'failed' })],
    ['a response that runs', JSON.stringify({ status: 'in_progress' })],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
  ])('is not whole: %s', (_name, text) => {
    expect(read('json', text)).toBeUndefined()
  })
})

const event = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const token = event({ choices: [{ text: 'a "usage" of words', finish_reason: null }] })
const done = event('[DONE]')

describe('a streamed response', () => {
  test.each([
    ['without counts', token + done, { usage: undefined }],
    ['with usage', token + event({ choices: [], usage: chatUsage }) + done, { usage }],
    [
      'with usage in every event',
      event({ usage: { prompt_tokens: 5, completion_tokens: 1 } }) + event({ usage: chatUsage }) + done,
      { usage },
    ],
    ['a response', event({ response: { status: 'completed', usage: responseUsage } }, 'response.completed'), { usage }],
    ['a response at its limit', event({ response: { usage: responseUsage } }, 'response.incomplete'), { usage }],
    ['other line ends', (token + done).replaceAll('\n', '\r\n'), { usage: undefined }],
    ['comments between', `: ping\n\n${token}${done}`, { usage: undefined }],
    ['a null error', event({ error: null, choices: [] }) + done, { usage: undefined }],
    [
      'words about errors',
      event({ choices: [{ text: 'error: "error"', finish_reason: 'stop' }] }) + done,
      { usage: undefined },
    ],
  ])('is whole: %s', (_name, text, expected) => {
    expect(read('stream', text)).toEqual(expected)
  })

  test.each([
    ['nothing', ''],
    ['no last event', token],
    ['a cut last event', token + done.slice(0, -1)],
    ['something after the last event', done + token],
    ['an error in it', token + event({ error: { message: 'no' } }) + done],
    ['an error event', token + event({}, 'error') + done],
    ['an error field', `${token}error: {"code":500}\n\n${done}`],
    ['a failed response', event({}, 'response.failed') + done],
    ['given up', event({ choices: [{ finish_reason: 'abort' }] }) + done],
  ])('is not whole: %s', (_name, text) => {
    expect(read('stream', text)).toBeUndefined()
  })
})
