import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { KeptBytes } from '../../../src/openai/kept-bytes.ts'

const pieces = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.uint8Array({ maxLength: 9 }) },
    fc.tuple(fc.nat(90_000), fc.nat(255)).map(([length, byte]) => new Uint8Array(length).fill(byte)),
  ),
  { maxLength: 60 },
)

test('what is kept is what was added, and takes little more memory in however many pieces it came', () => {
  fc.assert(
    fc.property(pieces, (added) => {
      const kept = new KeptBytes()
      for (const piece of added) {
        const passed = Buffer.from(piece)
        kept.add(passed)
        passed.fill(0)
      }
      const whole = Buffer.concat(added)
      expect(kept.length).toBe(whole.length)
      expect(kept.takenBytes).toBeGreaterThanOrEqual(whole.length)
      expect(kept.takenBytes).toBeLessThanOrEqual(1.25 * whole.length + 256 * (added.length + 1))

      expect(Buffer.concat(kept.take()).equals(whole)).toBe(true)
      expect([kept.length, kept.takenBytes]).toEqual([0, 0])
    }),
    { numRuns: 100 },
  )
})
