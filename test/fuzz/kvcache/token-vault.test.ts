import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createTokenCipher } from '../../../src/kvcache/vault/token-vault.ts'

const tokens = fc.uint32Array({ maxLength: 300 })
const cipher = createTokenCipher('a secret of the tests')
const pair = fc.uniqueArray(fc.string(), { minLength: 2, maxLength: 2 })

describe('sealed token ids', () => {
  test('open under their own artefact and secret, and under no other', () => {
    const property = fc.property(pair, pair, tokens, ([name = '', other = ''], [secret = '', another = ''], ids) => {
      const sealed = createTokenCipher(secret).seal(name, ids)
      expect(createTokenCipher(secret).open(name, sealed)).toEqual(ids)
      expect(createTokenCipher(secret).open(other, sealed)).toBeUndefined()
      expect(createTokenCipher(another).open(name, sealed)).toBeUndefined()
    })
    fc.assert(property)
  })

  test('do not open with any bit changed', () => {
    const property = fc.property(tokens, fc.nat(), (ids, at) => {
      const sealed = cipher.seal('a', ids)
      const bit = at % (sealed.length * 8)
      sealed.writeUInt8(sealed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(cipher.open('a', sealed)).toBeUndefined()
    })
    fc.assert(property, { numRuns: 500 })
  })

  test('are sealed differently each time, and are not read from any bytes', () => {
    const property = fc.property(tokens, fc.uint8Array({ maxLength: 200 }), (ids, bytes) => {
      expect(cipher.seal('a', ids)).not.toEqual(cipher.seal('a', ids))
      expect(cipher.open('a', bytes)).toBeUndefined()
    })
    fc.assert(property)
  })
})
