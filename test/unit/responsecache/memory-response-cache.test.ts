import { expect, test } from '@jest/globals'
import {
  type CachedResponse,
  createMemoryResponseCache,
  entryBytes,
} from '../../../src/responsecache/response-cache.ts'
import { type ResponseKey, responseKeyOf } from '../../../src/responsecache/response-key.ts'

const key = (name: string, part: Partial<Parameters<typeof responseKeyOf>[0]> = {}): ResponseKey =>
  responseKeyOf({
    tenant: 'tenant-a',
    model: 'm',
    path: '/v1/completions',
    form: 'json',
    canonicalBody: JSON.stringify({ prompt: name }),
    ...part,
  })

const response = (text: string): CachedResponse => ({
  contentType: 'application/json',
  body: Buffer.from(text),
  usage: undefined,
})

const cacheOf = (maxBytes: number, maxEntryBytes = maxBytes) => {
  let evicted = 0
  const cache = createMemoryResponseCache({
    maxBytes,
    maxEntryBytes,
    onEvicted: () => {
      evicted += 1
    },
  })
  return { cache, evicted: () => evicted }
}

const oneEntry = entryBytes(key('a'), response('answer'))

test('what was kept is found, and nothing else', () => {
  const { cache } = cacheOf(10_000)
  expect(cache.keep(key('a'), response('answer'))).toBe(true)
  expect(cache.lookUp(key('a'))).toEqual(response('answer'))
  expect(cache.lookUp(key('b'))).toBeUndefined()
  expect(cache.size()).toEqual({ entries: 1, bytes: oneEntry })
})

test.each([
  ['tenant', { tenant: 'tenant-b' }],
  ['model', { model: 'n' }],
  ['path', { path: '/v1/completions?a=b' }],
  ['form', { form: 'stream' as const }],
])('another %s is another request', (_name, part) => {
  const { cache } = cacheOf(10_000)
  cache.keep(key('a'), response('answer'))
  expect(cache.lookUp(key('a', part))).toBeUndefined()
})

test('requests with the same digest are told apart by what they are', () => {
  const { cache } = cacheOf(10_000)
  cache.keep(key('a'), response('answer'))
  expect(cache.lookUp({ digest: key('a').digest, identity: key('b').identity })).toBeUndefined()
})

test('the least recently used entry goes, whatever its model', () => {
  const { cache, evicted } = cacheOf(2 * oneEntry)
  cache.keep(key('a'), response('answer'))
  cache.keep(key('b', { model: 'n' }), response('answer'))
  cache.lookUp(key('a'))
  cache.keep(key('c'), response('answer'))
  expect(['a', 'c'].map((name) => cache.lookUp(key(name)) !== undefined)).toEqual([true, true])
  expect(cache.lookUp(key('b', { model: 'n' }))).toBeUndefined()
  expect(evicted()).toBe(1)
})

test('an answer that is too large changes nothing', () => {
  const { cache, evicted } = cacheOf(10 * oneEntry, 2 * oneEntry)
  cache.keep(key('a'), response('answer'))
  expect(cache.keep(key('a'), response('x'.repeat(2 * oneEntry)))).toBe(false)
  expect(cache.lookUp(key('a'))).toEqual(response('answer'))
  expect(evicted()).toBe(0)
})

test('the same request again takes the place of its earlier answer, and that is no eviction', () => {
  const { cache, evicted } = cacheOf(2 * oneEntry)
  cache.keep(key('a'), response('answer'))
  cache.keep(key('a'), response('reply!'))
  expect(cache.lookUp(key('a'))).toEqual(response('reply!'))
  expect(cache.size()).toEqual({ entries: 1, bytes: oneEntry })
  expect(evicted()).toBe(0)
})

test('what is kept is a copy', () => {
  const { cache } = cacheOf(10_000)
  const body = Buffer.from('answer')
  cache.keep(key('a'), { ...response(''), body })
  body.fill('x')
  expect(cache.lookUp(key('a'))?.body.toString()).toBe('answer')
})
