import { describe, expect, test } from '@jest/globals'
import { createAnswerCaptures } from '../../../src/responsecache/answer-capture.ts'
import { createByteBudget } from '../../../src/responsecache/byte-budget.ts'
import { createMemoryResponseCache } from '../../../src/responsecache/memory-response-cache.ts'
import { type AnswerForm, responseKeyOf } from '../../../src/responsecache/response-key.ts'

const answer = JSON.stringify({ choices: [{ text: 'a', finish_reason: 'stop' }] })
const stream = 'data: {"choices":[]}\n\ndata: [DONE]\n\n'

const bench = (
  options: { readonly form?: AnswerForm; readonly maxEntryBytes?: number; readonly budget?: number } = {},
) => {
  const form = options.form ?? 'json'
  const maxEntryBytes = options.maxEntryBytes ?? 10_000
  const cache = createMemoryResponseCache({ maxBytes: 100_000, maxEntryBytes, onEvicted: () => {} })
  const budget = createByteBudget(options.budget ?? 100_000)
  const begin = createAnswerCaptures({ cache, budget, maxEntryBytes })
  const key = responseKeyOf({ tenant: 't', model: 'm', path: '/v1/completions', form, canonicalBody: '{}' })
  return { begin: () => begin({ key, form }), kept: () => cache.lookUp(key), budget, keyBytes: key.identity.length }
}

const header =
  (headers: Readonly<Record<string, string | readonly string[]>>) =>
  (name: string): readonly string[] =>
    [headers[name] ?? []].flat()
const json = header({ 'content-type': 'application/json' })

describe('kept', () => {
  test.each([
    ['an answer in one piece', 'json', { 'content-type': 'application/json' }, [answer]],
    ['an answer in pieces', 'json', { 'content-type': 'application/json; charset=utf-8' }, answer.split('')],
    [
      'of the length that was said',
      'json',
      { 'content-type': 'application/json', 'content-length': `${answer.length}` },
      [answer],
    ],
    [
      'expressly not compressed',
      'json',
      { 'content-type': 'application/json', 'content-encoding': 'identity' },
      [answer],
    ],
    ['a stream', 'stream', { 'content-type': 'text/event-stream' }, stream.split('')],
  ] as const)('%s', (_name, form, headers, pieces) => {
    const { begin, kept, budget } = bench({ form })
    const capture = begin()
    expect(capture?.head(200, header(headers))).toBe('more')
    for (const piece of pieces) expect(capture?.chunk(Buffer.from(piece))).toBe('more')
    capture?.end('complete')
    expect(kept()).toMatchObject({ contentType: headers['content-type'], body: Buffer.from(pieces.join('')) })
    expect(budget.taken).toBe(0)
  })
})

describe('not even looked at', () => {
  test.each([
    ['an error', 500, { 'content-type': 'application/json' }],
    ['another success', 206, { 'content-type': 'application/json' }],
    ['a stream in place of JSON', 200, { 'content-type': 'text/event-stream' }],
    ['an answer of no type', 200, {}],
    ['of two types', 200, { 'content-type': ['application/json', 'text/plain'] }],
    ['something like JSON', 200, { 'content-type': 'application/jsonl' }],
    ['compressed', 200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
    ['not to be stored', 200, { 'content-type': 'application/json', 'cache-control': 'private, no-store' }],
    ['too long, as it says itself', 200, { 'content-type': 'application/json', 'content-length': '20000' }],
  ])('%s', (_name, status, headers) => {
    const { begin, kept, budget } = bench()
    const capture = begin()
    expect(capture?.head(status, header(headers))).toBe('enough')
    expect(capture?.chunk(Buffer.from(answer))).toBe('enough')
    capture?.end('complete')
    expect(kept()).toBeUndefined()
    expect(budget.taken).toBe(0)
  })
})

describe('not kept after all', () => {
  test.each([
    ['a broken answer', [answer], {}, 'broken'],
    ['half an answer', [answer.slice(0, 10)], {}, 'complete'],
    ['shorter than it said', [answer], { 'content-length': `${answer.length + 1}` }, 'complete'],
    ['nothing', [], {}, 'complete'],
  ] as const)('%s', (_name, pieces, headers, how) => {
    const { begin, kept, budget } = bench()
    const capture = begin()
    capture?.head(200, header({ 'content-type': 'application/json', ...headers }))
    for (const piece of pieces) capture?.chunk(Buffer.from(piece))
    capture?.end(how)
    expect(kept()).toBeUndefined()
    expect(budget.taken).toBe(0)
  })

  test('longer than an entry may be', () => {
    const { begin, kept, budget, keyBytes } = bench({ maxEntryBytes: 100 })
    const capture = begin()
    expect(capture?.head(200, json)).toBe('more')
    expect(capture?.chunk(Buffer.alloc(100 - keyBytes))).toBe('more')
    expect(capture?.chunk(Buffer.alloc(1))).toBe('enough')
    expect(budget.taken).toBe(keyBytes)
    capture?.end('broken')
    expect(kept()).toBeUndefined()
    expect(budget.taken).toBe(0)
  })

  test('no room among the answers that are being collected', () => {
    const { begin, kept, budget } = bench({ budget: 3000 })
    const capture = begin()
    capture?.head(200, json)
    expect(capture?.chunk(Buffer.alloc(4000))).toBe('enough')
    capture?.end('complete')
    expect(kept()).toBeUndefined()
    expect(budget.taken).toBe(0)
  })
})

test.each([
  ['its request alone is longer than an entry may be', { maxEntryBytes: 10 }],
  ['there is no room for its request', { budget: 10 }],
])('a capture is not begun when %s', (_name, options) => {
  expect(bench(options).begin()).toBeUndefined()
})
