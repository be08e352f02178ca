import { expect, test } from '@jest/globals'
import { type CachedResponse, createMemoryResponseCache } from '../../../src/responsecache/response-cache.ts'
import { type ResponseKey, responseKeyOf } from '../../../src/responsecache/response-key.ts'

const key = (name: string, model = 'm'): ResponseKey => {
  const canonicalBody = JSON.stringify({ prompt: name })
  return responseKeyOf({ tenant: 'tenant-a', model, path: '/v1/completions', form: 'json', canonicalBody })
}

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
// Another tenant, path and form of response: test/unit/context/response-cache-handler.test.ts.
test('a request with another model is a miss', () => {
  expect(filled().cache.lookUp(key('a', 'n'))).toBeUndefined()
})

test('a request with the same digest and another identity is a miss', () => {
  expect(filled().cache.lookUp({ digest: key('a').digest, identity: key('b').identity })).toBeUndefined()
})

test('an entry is a copy of the response', () => {
  const { cache, body } = filled()
  body.fill('x')
  expect(cache.lookUp(key('a'))).toEqual(response('answer'))
})

test('the answers of a tenant are dropped, and no others', () => {
  const { cache } = filled()
  const ofOther = responseKeyOf({ tenant: 'tt', model: 'm', path: '/', form: 'json', canonicalBody: '{}' })
  cache.keep(ofOther, response('other'))
  expect([cache.forget('tt'), cache.forget('tt'), cache.forget('x')]).toEqual([1, 0, 0])
  expect([cache.lookUp(ofOther), cache.lookUp(key('a'))]).toEqual([undefined, response('answer')])
})
