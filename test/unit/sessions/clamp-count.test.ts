import { expect, test } from '@jest/globals'
import { clampCount, largestCount } from '../../../src/sessions/limits.ts'

test.each([
  { value: 0, whole: 0 },
  { value: 7, whole: 7 },
  { value: 7.9, whole: 7 },
  { value: -1, whole: 0 },
  { value: Number.NaN, whole: 0 },
  { value: Number.POSITIVE_INFINITY, whole: 0 },
  { value: 1e300, whole: largestCount },
  { value: largestCount, whole: largestCount },
])('$value counts as $whole', ({ value, whole }) => {
  expect(clampCount(value)).toBe(whole)
})
