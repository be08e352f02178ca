import { expect, test } from '@jest/globals'
import { type CachedResponse, createMemoryResponseCache } from '../../../src/responsecache/response-cache.ts'
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

const filled = () => {
  const cache = createMemoryResponseCache({ maxBytes: 10_000, maxEntryBytes: 10_000, onEvicted: () => {} })
  const body = Buffer.from('answer')
  cache.keep(key('a'), { ...response(''), body })
  return { cache, body }
}

// Sizes, evictions and replaced entries: test/fuzz/responsecache/response-cache.test.ts.
test.each([
  ['tenant', { tenant: 'tenant-b' }],
  ['model', { model: 'n' }],
  ['path', { path: '/v1/completions?a=b' }],
  ['form of response', { form: 'stream' as const }],
])('a request with another %s is a miss', (_name, part) => {
  expect(filled().cache.lookUp(key('a', part))).toBeUndefined()
})

test('a request with the same digest and another identity is a miss', () => {
  expect(filled().cache.lookUp({ digest: key('a').digest, identity: key('b').identity })).toBeUndefined()
})

test('an entry is a copy of the response', () => {
  const { cache, body } = filled()
  body.fill('x')
  expect(cache.lookUp(key('a'))).toEqual(response('answer'))
})
