import { expect, test } from '@jest/globals'
import { createBlockIndex } from '../../../../src/kvcache/kv-events/block-index.ts'
import { fingerprintOf } from '../../../../src/kvcache/kv-events/token-fingerprint.ts'

/** Another run of two tokens with the same fingerprint: FNV-1a's last step undoes any difference before it. */
const collision = ([first, second]: readonly [number, number], otherFirst: number): Uint32Array => {
  const step = (token: number): number => Math.imul(0x811c9dc5 ^ 2 ^ token, 0x01000193)
  return Uint32Array.of(otherFirst, (second ^ step(first) ^ step(otherFirst)) >>> 0)
}

test('blocks with equal fingerprints and other tokens are kept apart', () => {
  const held = Uint32Array.of(100, 200)
  const other = collision([100, 200], 101)
  expect(fingerprintOf(other, 0, 2)).toBe(fingerprintOf(held, 0, 2))

  const index = createBlockIndex({ maxBlocks: 10 })
  const root = { kind: 'root', salt: 's', lora: undefined } as const
  index.apply({ kind: 'stored', after: root, blocks: [{ hash: 'a', tokens: held }], turnId: undefined })
  expect(index.residentTokens({ salt: 's', tokens: other })).toBe(0)

  index.apply({ kind: 'stored', after: root, blocks: [{ hash: 'b', tokens: other }], turnId: undefined })
  index.apply({ kind: 'removed', hashes: ['a'] })
  expect(index.residentTokens({ salt: 's', tokens: other })).toBe(2)
  expect(index.residentTokens({ salt: 's', tokens: held })).toBe(0)
})
