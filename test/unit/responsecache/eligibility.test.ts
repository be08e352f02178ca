import { describe, expect, test } from '@jest/globals'
import { readCacheableRequest, uncountedMembers } from '../../../src/responsecache/eligibility.ts'

const read = (part: object) =>
  readCacheableRequest(new Map(Object.entries({ model: 'm', temperature: 0, prompt: 'hello', ...part })))

const image = (url: string) => ({
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
})

describe('request is cacheable', () => {
  test.each([
    ['temperature 0', {}, 'json'],
    ['a seed', { temperature: 1, seed: 0 }, 'json'],
    ['the largest seed', { temperature: 1, seed: 2 ** 32 - 2 }, 'json'],
    ['a stream', { stream: true }, 'stream'],
    ['no stream', { stream: false }, 'json'],
    ['null for missing', { stream: null, n: null, best_of: null, tools: null, background: null }, 'json'],
    ['one choice', { n: 1, best_of: 1 }, 'json'],
    ['functions of the client', { tools: [{ type: 'function', function: { name: 'f' } }, { type: 'custom' }] }, 'json'],
    ['log probabilities', { logprobs: true, top_logprobs: 5 }, 'json'],
    ['token ids', { prompt: [1, 2, 3] }, 'json'],
    ['a picture in the request', image('data:image/png;base64,AAAA'), 'json'],
    ['a text that looks like an address', { messages: [{ role: 'user', content: 'http://example.com' }] }, 'json'],
    ['input in parts', { input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }] }] }, 'json'],
  ])('with %s', (_name, part, form) => {
    expect(read(part)).toEqual({ model: 'm', form })
  })
})

describe('request is not cacheable', () => {
  test.each([
    ['no model', { model: undefined }],
    ['a model that is no text', { model: 1 }],
    ['sampling', { temperature: undefined }],
    ['a low temperature', { temperature: 0.1 }],
    ['a temperature that is no number', { temperature: '0' }],
    ['a seed that is no whole number', { temperature: 1, seed: 0.5 }],
    ['no seed', { temperature: 1, seed: null }],
    ['a random seed', { temperature: 1, seed: -1 }],
    ['a random seed of 32 bits', { temperature: 1, seed: 2 ** 32 - 1 }],
    ['several choices', { n: 2 }],
    ['the best of several', { best_of: 2 }],
    ['a malformed stream', { stream: 'true' }],
    ['an earlier response', { previous_response_id: 'resp_1' }],
    ['a conversation', { conversation: 'conv_1' }],
    ['background', { background: true }],
    ['a stored prompt', { prompt: { id: 'pmpt_1' } }],
    ['a tool that the engine runs', { tools: [{ type: 'function' }, { type: 'web_search' }] }],
    ['tools outside a list', { tools: 'all' }],
    ['a null tool', { tools: [null] }],
    ['a search', { web_search_options: {} }],
    ['a picture elsewhere', image('https://example.com/a.png')],
    ['a picture elsewhere, as a text', { input: [{ content: [{ type: 'input_image', image_url: 'http://a/b' }] }] }],
    ['a file by its id', { messages: [{ content: [{ type: 'file', file: { file_id: 'file-1' } }] }] }],
    ['a picture by its id', { messages: [{ content: [{ type: 'image_url', image_url: null, uuid: 'a' }] }] }],
    ['an item by its id', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ])('with %s', (_name, part) => {
    expect(read(part)).toBeUndefined()
  })
})

test.each([
  ['completions', 'user', true],
  ['chat', 'priority', true],
  ['chat', 'stream', true],
  ['chat', 'stream_options', false],
  ['chat', 'metadata', false],
  ['chat', 'cache_salt', false],
  ['responses', 'stream', true],
  ['responses', 'user', false],
] as const)('in the key of %s, %s is left out: %s', (api, name, isLeftOut) => {
  expect(uncountedMembers(api).has(name)).toBe(isLeftOut)
})
