import { expect, test } from '@jest/globals'
import { createMemoryResponseCache } from '../../../src/responsecache/response-cache.ts'
import { createResponseCaptures } from '../../../src/responsecache/response-capture.ts'
import { type ResponseForm, responseKeyOf } from '../../../src/responsecache/response-key.ts'

const answer = JSON.stringify({ choices: [{ text: 'a', finish_reason: 'stop' }] })
const stream = 'data: {"choices":[]}\n\ndata: [DONE]\n\n'
const json = { 'content-type': 'application/json' }

const setUp = (
  given: { readonly form?: ResponseForm; readonly maxEntryBytes?: number; readonly maxBytes?: number } = {},
) => {
  const { form = 'json', maxEntryBytes = 10_000, maxBytes = 100_000 } = given
  const cache = createMemoryResponseCache({ maxBytes: 100_000, maxEntryBytes, onEvicted: () => {} })
  const captures = createResponseCaptures({ cache, maxBytes, maxEntryBytes })
  const key = responseKeyOf({ tenant: 't', model: 'm', path: '/v1/completions', form, canonicalBody: '{}' })
  return {
    capture: captures.begin({ key, form }),
    kept: () => cache.lookUp(key),
    bytes: captures.bytes,
    forget: captures.forget,
    keyBytes: key.identity.length,
  }
}

const header =
  (headers: Readonly<Record<string, string | readonly string[]>>) =>
  (name: string): readonly string[] =>
    [headers[name] ?? []].flat()

test.each([
  ['a response in one piece', 'json', json, [answer]],
  ['a response in pieces', 'json', { 'content-type': 'application/json; charset=utf-8' }, answer.split('')],
  ['a response of the stated length', 'json', { ...json, 'content-length': `${answer.length}` }, [answer]],
  ['a response marked as uncompressed', 'json', { ...json, 'content-encoding': 'identity' }, [answer]],
  ['a stream', 'stream', { 'content-type': 'text/event-stream' }, stream.split('')],
] as const)('capture caches %s', (_name, form, headers, pieces) => {
  const { capture, kept, bytes } = setUp({ form })
  expect(capture?.head(200, header(headers))).toBe('more')
  for (const piece of pieces) expect(capture?.chunk(Buffer.from(piece))).toBe('more')
  capture?.end('complete')
  expect(kept()).toMatchObject({ contentType: headers['content-type'], body: Buffer.from(pieces.join('')) })
  expect(bytes()).toBe(0)
})

test.each([
  ['an error', 500, json],
  ['another success than 200', 206, json],
  ['a stream instead of JSON', 200, { 'content-type': 'text/event-stream' }],
  ['a response without a type', 200, {}],
  ['a response of two types', 200, { 'content-type': ['application/json', 'text/plain'] }],
  ['a type that begins like JSON', 200, { 'content-type': 'application/jsonl' }],
  ['a compressed answer', 200, { ...json, 'content-encoding': 'gzip' }],
  ['a response with no-store', 200, { ...json, 'cache-control': 'private, no-store' }],
  ['a response whose stated length is too long', 200, { ...json, 'content-length': '20000' }],
])('capture stops at the headers of %s', (_name, status, headers) => {
  const { capture, kept, bytes } = setUp()
  expect(capture?.head(status, header(headers))).toBe('enough')
  expect(capture?.chunk(Buffer.from(answer))).toBe('enough')
  capture?.end('complete')
  expect([kept(), bytes()]).toEqual([undefined, 0])
})

test.each([
  ['is cut by the engine', [answer], {}, 'broken'],
  ['is half of its JSON', [answer.slice(0, 10)], {}, 'complete'],
  ['is shorter than its stated length', [answer], { 'content-length': `${answer.length + 1}` }, 'complete'],
  ['is empty', [], {}, 'complete'],
] as const)('capture drops a response that %s', (_name, pieces, headers, how) => {
  const { capture, kept, bytes } = setUp()
  capture?.head(200, header({ ...json, ...headers }))
  for (const piece of pieces) capture?.chunk(Buffer.from(piece))
  capture?.end(how)
  expect([kept(), bytes()]).toEqual([undefined, 0])
})

test('capture stops when answer and request exceed maxEntryBytes, and releases the response at once', () => {
  const { capture, bytes, keyBytes } = setUp({ maxEntryBytes: 100 })
  capture?.head(200, header(json))
  expect(capture?.chunk(Buffer.alloc(100 - keyBytes))).toBe('more')
  expect(capture?.chunk(Buffer.alloc(1))).toBe('enough')
  expect(bytes()).toBe(keyBytes)
  capture?.end('complete')
  expect(bytes()).toBe(0)
})

test.each([
  ['maxEntryBytes', { maxEntryBytes: 10 }],
  ['the memory left for captures', { maxBytes: 10 }],
])('no capture begins for a request longer than %s', (_name, given) => {
  expect(setUp(given).capture).toBeUndefined()
})

test.each([
  ['t', undefined],
  ['another', answer],
])('an answer that is collected while the tenant %s is forgotten', (tenant, kept) => {
  const capture = setUp()
  capture.capture?.head(200, header(json))
  capture.forget(tenant)
  capture.capture?.chunk(Buffer.from(answer))
  capture.capture?.end('complete')
  expect([capture.kept()?.body.toString(), capture.bytes()]).toEqual([kept, 0])
})
