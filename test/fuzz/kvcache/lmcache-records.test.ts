import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { readJson } from '../../../src/json/read-json.ts'
import { parseClaim } from '../../../src/kvcache/lmcache/claim.ts'
import { encodeStoredPrefix, objectKeysOf, parseStoredPrefix } from '../../../src/kvcache/lmcache/stored-prefix.ts'

const hex = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...Array.from('0123456789abcdef')), { minLength, maxLength })
    .map((digits) => digits.join(''))
const text = (maxLength: number): fc.Arbitrary<string> => fc.string({ minLength: 1, maxLength })

const anyStored = fc.record({
  artefactId: text(21),
  turnId: text(16),
  modelRoot: text(60),
  salt: hex(32, 32),
  life: fc.string({ maxLength: 8 }),
  chunks: fc.array(hex(8, 64), { maxLength: 20 }),
  pieces: fc.array(fc.tuple(fc.nat(), fc.nat(9)), { maxLength: 4 }),
  chunkTokens: fc.integer({ min: 1, max: 4096 }),
})
const anyBase = fc.record({ chunks: fc.nat(), lastChunk: hex(0, 64) })
const anyClaim = fc.record(
  {
    fingerprint: text(32),
    store: text(40),
    life: fc.string({ maxLength: 8 }),
    modelRoot: text(60),
    blockTokens: fc.integer({ min: 1, max: 512 }),
    beganAtMs: fc.nat(),
    base: anyBase,
  },
  { requiredKeys: ['fingerprint', 'store', 'life', 'modelRoot', 'blockTokens'] },
)

/** Texts that are no record, and some that nearly are. */
const anyText = fc.oneof(fc.string(), fc.json(), fc.json({ depthSize: 'large' }))

describe('records of the connector lmcache', () => {
  test('a stored prefix is read as it was written', () => {
    fc.assert(fc.property(anyStored, (stored) => expect(parseStoredPrefix(encodeStoredPrefix(stored))).toEqual(stored)))
  })

  test('a claim is read as it was written', () => {
    const property = fc.property(anyClaim, (claim) =>
      expect(parseClaim(JSON.parse(JSON.stringify(claim)))).toEqual({ beganAtMs: 0, ...claim }),
    )
    fc.assert(property)
  })

  test.each([
    ['stored prefix', parseStoredPrefix],
    ['claim', (other: string) => parseClaim(readJson(other))],
  ] as const)('any other text is not read as a %s', (_name, parse) => {
    fc.assert(fc.property(anyText, (other) => expect(parse(other)).toBeUndefined()))
  })

  test('a prefix of another version is not read', () => {
    const later = (payload: string): string => payload.replace('"v":2', '"v":3')
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
})
