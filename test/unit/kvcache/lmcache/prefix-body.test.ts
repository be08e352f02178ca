import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { prefixBody } from '../../../../src/kvcache/lmcache/prefix-body.ts'

const read = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString('utf8'))

test('prefixBody adds token_ids to the other fields', () => {
  const fields = { model_name: 'models/"tiny"\n', world_size: 2, cache_salt: 'ü' }
  expect(read(prefixBody(fields, Uint32Array.of(7, 0, 12)))).toEqual({ ...fields, token_ids: [7, 0, 12] })
})

test.each([0, 9, 10, 99, 100, 999_999_999, 1_000_000_000, 0xffff_ffff])('prefixBody writes token id %i', (token) => {
  expect(read(prefixBody({ a: 1 }, Uint32Array.of(token, token)))).toEqual({ a: 1, token_ids: [token, token] })
})

test('prefixBody writes an empty list', () => {
  expect(read(prefixBody({ a: 1 }, new Uint32Array()))).toEqual({ a: 1, token_ids: [] })
})

test('prefixBody writes any token ids as JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.uint32Array({ maxLength: 200 }), (tokens) => {
      const body = Buffer.from(prefixBody({ a: 'b' }, tokens)).toString('latin1')
      expect(body).toBe(`{"token_ids":${JSON.stringify(Array.from(tokens))},"a":"b"}`)
    }),
  )
})
