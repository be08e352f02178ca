import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { readTokenIds } from '../../../../src/kvcache/kv-events/decode-events.ts'

test.each<{ readonly name: string; readonly value: unknown; readonly expected: readonly number[] | undefined }>([
  { name: 'whole numbers of 32 bits', value: [0, 1, 0xffff_ffff], expected: [0, 1, 0xffff_ffff] },
  { name: 'an empty list', value: [], expected: [] },
  { name: 'a number that is too large', value: [1, 0x1_0000_0000], expected: undefined },
  { name: 'a negative number', value: [-1], expected: undefined },
  { name: 'a fraction', value: [1.5], expected: undefined },
  { name: 'what is no number at all', value: [Number.NaN], expected: undefined },
  { name: 'infinity', value: [Number.POSITIVE_INFINITY], expected: undefined },
  { name: 'a text', value: ['1'], expected: undefined },
  { name: 'a 64-bit number', value: [1n], expected: undefined },
  { name: 'a list of lists', value: [[1]], expected: undefined },
  { name: 'no list', value: { 0: 1, length: 1 }, expected: undefined },
  { name: 'nothing', value: undefined, expected: undefined },
])('readTokenIds reads $name', ({ value, expected }) => {
  const tokens = readTokenIds(value)
  expect(tokens === undefined ? undefined : [...tokens]).toEqual(expected)
})

test('readTokenIds reads any list of token ids unchanged', () => {
  fc.assert(
    fc.property(fc.uint32Array(), (tokens) => {
      expect(readTokenIds(Array.from(tokens))).toEqual(tokens)
    }),
  )
})
