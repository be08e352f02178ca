import { expect, test } from '@jest/globals'
import { createSizeForecast } from '../../../../src/kvcache/llamacpp-slots/size-forecast.ts'

test('the least size of a file is 0 before the engine has stored anything', () => {
  expect(createSizeForecast().leastBytes('engine', 1_000_000)).toBe(0)
})

test('the least size of a file follows the smallest number of bytes per token', () => {
  const sizes = createSizeForecast()
  sizes.seen('engine', { tokens: 10, bytes: 2_000 })
  sizes.seen('engine', { tokens: 100, bytes: 11_000 })
  sizes.seen('engine', { tokens: 0, bytes: 900 })
  expect(sizes.leastBytes('engine', 1_000)).toBeGreaterThan(100_000)
  expect(sizes.leastBytes('engine', 1_000)).toBeLessThan(110_000)
  expect(sizes.leastBytes('another engine', 1_000)).toBe(0)
})
