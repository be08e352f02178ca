import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ContentKey } from '../../../src/kvcache/vault/token-vault.ts'
import { openEntry, sealEntry } from '../../../src/kvcache/vault/vault-cipher.ts'

const key = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64url') as ContentKey)
/** Content short and long, some of which can be compressed. */
const content = fc
  .tuple(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(1, 1, 20))
  .map(([bytes, times]) => Buffer.concat(Array.from({ length: times }, () => Buffer.from(bytes))))
const name = fc.string()

describe('a sealed entry', () => {
  test('opens under its own name and key', async () => {
    const property = fc.asyncProperty(name, key, content, async (of, contentKey, bytes) => {
      const sealed = await sealEntry({ name: of, contentKey, content: bytes })
      const opened = await openEntry(sealed, { name: of, contentKey })
      expect(Buffer.from(opened ?? 'unopened')).toEqual(bytes)
    })
    await fc.assert(property)
  })

  test('opens under no other', async () => {
    const pair = (one: fc.Arbitrary<string>) => fc.uniqueArray(one, { minLength: 2, maxLength: 2 })
    const property = fc.asyncProperty(pair(name), pair(key), content, async (names, keys, bytes) => {
      const [own = '', other = ''] = names
      const [ownKey = '', otherKey = ''] = keys as ContentKey[]
      const sealed = await sealEntry({ name: own, contentKey: ownKey as ContentKey, content: bytes })
      expect(await openEntry(sealed, { name: other, contentKey: ownKey as ContentKey })).toBeUndefined()
      expect(await openEntry(sealed, { name: own, contentKey: otherKey as ContentKey })).toBeUndefined()
    })
    await fc.assert(property)
  })

  test('does not open with any bit changed', async () => {
    const property = fc.asyncProperty(key, content, fc.nat(), async (contentKey, bytes, at) => {
      const sealed = await sealEntry({ name: 'a', contentKey, content: bytes })
      const bit = at % (sealed.length * 8)
      sealed.writeUInt8(sealed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(await openEntry(sealed, { name: 'a', contentKey })).toBeUndefined()
    })
    await fc.assert(property, { numRuns: 500 })
  })

  test('is not read from any bytes', async () => {
    const property = fc.asyncProperty(key, fc.uint8Array({ maxLength: 200 }), async (contentKey, bytes) => {
      expect(await openEntry(bytes, { name: 'a', contentKey })).toBeUndefined()
    })
    await fc.assert(property, { numRuns: 500 })
  })
})
