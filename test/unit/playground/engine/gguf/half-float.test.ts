import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { halfFloatBits } from '../../../../../playground/engine/gguf/half-float.ts'

describe('halfFloatBits', () => {
  test.each([
    ['zero', 0, 0x0000],
    ['minus zero', -0, 0x8000],
    ['one', 1, 0x3c00],
    ['minus two', -2, 0xc000],
    ['a third', 1 / 3, 0x3555],
    ['the largest number', 65_504, 0x7bff],
    ['beyond the largest number', 65_520, 0x7c00],
    ['far beyond it', 1e30, 0x7c00],
    ['the smallest number', 2 ** -24, 0x0001],
    ['half of it, which is even', 2 ** -25, 0x0000],
    ['nothing to speak of', 2 ** -40, 0x0000],
    ['the largest subnormal', 1023 * 2 ** -24, 0x03ff],
    ['a tie that goes down', 1 + 2 ** -11, 0x3c00],
    ['a tie that goes up', 1 + 3 * 2 ** -11, 0x3c02],
    ['a carry into the exponent', 2 - 2 ** -12, 0x4000],
  ])('%s', (_, value, bits) => {
    expect(halfFloatBits(value)).toBe(bits)
  })

  test('is the nearest of the 63,488 finite numbers, whatever the value', () => {
    const finite = Array.from({ length: 0x7c00 }, (_, bits) => decode(bits))
    fc.assert(
      fc.property(fc.double({ min: 0, max: 65_504, noNaN: true }), (value) => {
        const single = Math.fround(value)
        const error = Math.abs(decode(halfFloatBits(single)) - single)
        const above = finite.findIndex((candidate) => candidate >= single)
        const neighbours = finite.slice(Math.max(0, above - 1), above + 1)
        expect(error).toBe(Math.min(...neighbours.map((candidate) => Math.abs(candidate - single))))
      }),
    )
  })
})

function decode(bits: number): number {
  const exponent = (bits >>> 10) & 0x1f
  const mantissa = bits & 0x3ff
  return exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25)
}
