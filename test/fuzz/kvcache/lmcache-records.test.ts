import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { encodeClaim, parseClaim } from '../../../src/kvcache/lmcache/claim.ts'
import { encodeStoredPrefix, objectKeysOf, parseStoredPrefix } from '../../../src/kvcache/lmcache/stored-prefix.ts'
import { createUnpinKeys } from '../../../src/kvcache/lmcache/unpin-keys.ts'
import type { ContentKey } from '../../../src/kvcache/vault/token-vault.ts'

const hex = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...Array.from('0123456789abcdef')), { minLength, maxLength })
    .map((digits) => digits.join(''))
const text = (maxLength: number): fc.Arbitrary<string> => fc.string({ minLength: 1, maxLength })
const anyKey = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64url') as ContentKey)

const anyStored = fc.record({
  artefactId: text(21),
  turnId: text(16),
  modelRoot: text(60),
  salt: hex(32, 32),
  life: fc.string({ maxLength: 8 }),
  isOwnSalt: fc.boolean(),
  chunks: fc.array(hex(8, 64), { maxLength: 20 }),
  pieces: fc.array(fc.tuple(fc.nat(), fc.nat(9)), { minLength: 1, maxLength: 4 }),
  chunkTokens: fc.integer({ min: 1, max: 4096 }),
  unpinKey: fc.string({ maxLength: 80 }),
})
const anyClaim = fc.record({
  salt: hex(32, 32),
  life: fc.string({ maxLength: 8 }),
  isOwnSalt: fc.boolean(),
  modelRoot: text(60),
  blockTokens: fc.integer({ min: 1, max: 512 }),
  hasEvents: fc.boolean(),
  contentKey: anyKey,
  base: fc.option(
    fc.record({
      artefactId: text(21),
      tokens: fc.nat(),
      stored: fc.option(fc.record({ payload: fc.string(), bytes: fc.nat() }), { nil: undefined }),
    }),
    { nil: undefined },
  ),
  isCreate: fc.boolean(),
})

/** Texts that are no record, and some that nearly are. */
const anyText = fc.oneof(fc.string(), fc.json(), fc.json({ depthSize: 'large' }))

describe('records of connectors', () => {
  test('a stored prefix is read as it was written', () => {
    fc.assert(fc.property(anyStored, (stored) => expect(parseStoredPrefix(encodeStoredPrefix(stored))).toEqual(stored)))
  })

  test('a claim is read as it was written', () => {
    fc.assert(fc.property(anyClaim, (claim) => expect(parseClaim(encodeClaim(claim))).toEqual(claim)))
  })

  test.each([
    ['stored prefix', parseStoredPrefix],
    ['claim', parseClaim],
  ] as const)('any other text is not read as a %s', (_name, parse) => {
    fc.assert(fc.property(anyText, (other) => expect(parse(other)).toBeUndefined()))
  })

  test('a prefix of a later version is not read', () => {
    const later = (payload: string): string => payload.replace('"v":1', '"v":2')
    fc.assert(
      fc.property(anyStored, (stored) => expect(parseStoredPrefix(later(encodeStoredPrefix(stored)))).toBeUndefined()),
    )
  })

  test('objectKeysOf has one key per chunk and piece', () => {
    fc.assert(
      fc.property(anyStored, (stored) => {
        const names = objectKeysOf(stored, stored.chunks).map((key) => [
          key.chunk_hash_hex,
          key.kv_rank,
          key.object_group_id,
        ])
        expect(names).toEqual(stored.chunks.flatMap((chunk) => stored.pieces.map((piece) => [chunk, ...piece])))
      }),
    )
  })

  test('an unpin key opens only with its own secret and artefact', () => {
    fc.assert(
      fc.property(anyKey, text(21), text(21), fc.nat(), (key, artefactId, other, at) => {
        const keys = createUnpinKeys('secret')
        const sealed = keys.seal(key, artefactId)
        expect(keys.open(sealed, artefactId)).toBe(key)
        expect(createUnpinKeys('another').open(sealed, artefactId)).toBeUndefined()
        expect(keys.open(sealed, `${artefactId}${other}`)).toBeUndefined()
        const bytes = Buffer.from(sealed, 'base64url')
        const place = at % bytes.length
        bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
        expect(keys.open(bytes.toString('base64url'), artefactId)).toBeUndefined()
        expect(keys.open(sealed.slice(0, -4), artefactId)).toBeUndefined()
      }),
    )
  })
})
