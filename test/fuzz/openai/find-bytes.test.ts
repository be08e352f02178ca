import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { findBytes } from '../../../src/openai/find-bytes.ts'
import { countSlices } from '../../support/all-slices.ts'

const wanted = Buffer.from('"content"')

test('a text is found where it stands, also across the ends of slices', () => {
  const part = fc.constantFrom('"', 'c', '"conten', '"content"', 'x'.repeat(65_530), 'y'.repeat(65_536))
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.nat({ max: 200_000 }), (parts, from) => {
      const body = Buffer.from(parts.join(''))
      expect(countSlices(findBytes(body, wanted, from)).result).toBe(body.indexOf(wanted, Math.min(from, body.length)))
    }),
    { numRuns: 300 },
  )
})

test('a long body is searched in slices', () => {
  expect(countSlices(findBytes(Buffer.alloc(1_000_000, '"'), wanted)).slices).toBeGreaterThan(5)
})
