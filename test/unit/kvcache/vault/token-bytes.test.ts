import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { tokensFromBytes, tokensToBytes } from '../../../../src/kvcache/vault/token-bytes.ts'

describe('token ids as bytes', () => {
  test('are four bytes per id, little endian', () => {
    expect([...tokensToBytes(Uint32Array.of(1, 0x01020304, 0xffffffff))]).toEqual([
      1, 0, 0, 0, 4, 3, 2, 1, 255, 255, 255, 255,
    ])
  })

  test.each([1, 2, 3, 5, 4_001])('are not read from %i bytes', (length) => {
    expect(tokensFromBytes(new Uint8Array(length))).toBeUndefined()
  })

  test('are empty for an empty list', () => {
    expect(tokensToBytes(new Uint32Array())).toEqual(new Uint8Array())
    expect(tokensFromBytes(new Uint8Array())).toEqual(new Uint32Array())
  })

  test('decode to what was encoded, from any offset of a buffer', () => {
    const anywhere = fc.property(fc.uint32Array(), fc.nat(7), (tokens, offset) => {
      const bytes = tokensToBytes(tokens)
      const around = new Uint8Array(offset + bytes.length + 3)
      around.set(bytes, offset)
      expect(tokensFromBytes(around.subarray(offset, offset + bytes.length))).toEqual(tokens)
    })
    fc.assert(anywhere)
  })
})
