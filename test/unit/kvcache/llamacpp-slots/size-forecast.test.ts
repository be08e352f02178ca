import { expect, test } from '@jest/globals'
import { createSizeForecast } from '../../../../src/kvcache/llamacpp-slots/size-forecast.ts'

test('an engine that has stored nothing yet may store anything', () => {
  expect(createSizeForecast().leastBytes('engine', 1_000_000)).toBe(0)
})

test('a file is foretold from the smallest number of bytes per token, and rather too small than too large', () => {
  const sizes = createSizeForecast()
  sizes.seen('engine', { tokens: 10, bytes: 2_000 })
  sizes.seen('engine', { tokens: 100, bytes: 11_000 })
  sizes.seen('engine', { tokens: 0, bytes: 900 })
  expect(sizes.leastBytes('engine', 1_000)).toBeGreaterThan(100_000)
  expect(sizes.leastBytes('engine', 1_000)).toBeLessThan(110_000)
  expect(sizes.leastBytes('another engine', 1_000)).toBe(0)
})
