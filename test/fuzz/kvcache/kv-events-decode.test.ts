import { expect, test } from '@jest/globals'
import { encode } from '@msgpack/msgpack'
import fc from 'fast-check'
import { decodeEvents } from '../../../src/kvcache/kv-events/decode-events.ts'
import { decodedBytes } from '../../../src/kvcache/kv-events/decoded-bytes.ts'
import { allSlices } from '../../support/all-slices.ts'
import { storedEvent } from '../../support/kv-event-messages.ts'

/** Nothing that arrives may throw; what is taken for an event has whole blocks. */
const expectSound = (bytes: Uint8Array): void => {
  for (const event of allSlices(decodeEvents(bytes)) ?? []) {
    if (event.kind !== 'reported') continue
    expect(event.tokens.length).toBe(event.hashes.length * event.blockTokens)
  }
}

test('decodeEvents never throws for any bytes', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), expectSound), { numRuns: 1_000 })
})

test('decodeEvents never throws for any batch', () => {
  const fields = [
    'block_hashes',
    'parent_block_hash',
    'token_ids',
    'block_size',
    'extra_keys',
    'medium',
    'lora_id',
    'lora_name',
  ]
  const value = fc.oneof(
    fc.constantFrom(null, 0, 1, -1, 1.5, '', 'GPU', 2n ** 63n),
    fc.array(fc.oneof(fc.nat(9), fc.constant(null), fc.array(fc.oneof(fc.string(), fc.nat(3)))), { maxLength: 4 }),
  )
  const event = fc.record({
    type: fc.constantFrom('BlockStored', 'BlockRemoved', 'AllBlocksCleared', 'Other'),
    changes: fc.dictionary(fc.constantFrom(...fields), value),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 4 }), (events) => {
      const wire = events.map(({ type, changes }) => ({
        ...storedEvent({ hashes: [1, 2], tokens: [1, 2, 3, 4], salt: 's', turnId: 't' }),
        ...changes,
        type,
      }))
      expectSound(encode([0.5, wire, 0], { useBigInt64: true }))
    }),
    { numRuns: 1_000 },
  )
})

test('decodeEvents never throws for a batch with a byte changed or cut', () => {
  const bytes = encode([0.5, [storedEvent({ hashes: [1, 2], tokens: [1, 2, 3, 4], salt: 's', turnId: 't' })], 0])
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (at, byte, length) => {
      const changed = bytes.slice(0, length)
      if (at < length) changed[at] = byte
      expectSound(changed)
    }),
    { numRuns: 1_000 },
  )
})

test('decodedBytes finds the end of any value', () => {
  const leaf = fc.oneof(
    fc.constantFrom(null, true, false, 'x'.repeat(70_000), new Uint8Array(300), new Uint8Array(70_000)),
    fc.oneof(fc.string(), fc.string({ minLength: 20, maxLength: 300 }), fc.uint8Array()),
    fc.oneof(fc.double(), fc.integer(), fc.nat(300), fc.maxSafeInteger(), fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n)),
  )
  const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 40 }), fc.dictionary(fc.string(), leaf, { maxKeys: 40 }))
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const bytes = encode(values, { useBigInt64: true })
      expect(decodedBytes(bytes)).toBeGreaterThan(0)
      expect(() => decodedBytes(Buffer.concat([bytes, Buffer.of(0)]))).toThrow(RangeError)
    }),
  )
})
