import { expect, test } from '@jest/globals'
import { largestWhole, toWhole } from '../../../src/sessions/whole-number.ts'

test.each([
  { value: 0, whole: 0 },
  { value: 7, whole: 7 },
  { value: 7.9, whole: 7 },
  { value: -1, whole: 0 },
  { value: Number.NaN, whole: 0 },
  { value: Number.POSITIVE_INFINITY, whole: 0 },
  { value: 1e300, whole: largestWhole },
  { value: largestWhole, whole: largestWhole },
])('$value counts as $whole', ({ value, whole }) => {
  expect(toWhole(value)).toBe(whole)
})
