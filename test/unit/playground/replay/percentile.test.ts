import { expect, test } from '@jest/globals'
import { percentile } from '../../../../playground/replay/replay-record.ts'

test.each([
  { numbers: [], share: 0.5, is: 0 },
  { numbers: [7], share: 0.99, is: 7 },
  { numbers: [1, 2, 3, 4], share: 0.5, is: 2 },
  { numbers: [1, 2, 3, 4], share: 0.51, is: 3 },
  { numbers: [1, 2, 3, 4], share: 0, is: 1 },
  { numbers: [1, 2, 3, 4], share: 1, is: 4 },
])('of $numbers, $share are at most $is', ({ numbers, share, is }) => {
  expect(percentile(Float64Array.from(numbers), share)).toBe(is)
})
