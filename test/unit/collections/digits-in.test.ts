import { expect, test } from '@jest/globals'
import { digitsIn } from '../../../src/collections/digits-in.ts'

test.each([
  ['one digit', '7', 7],
  ['leading zeros', '007', 7],
  ['fifteen digits', '999999999999999', 999_999_999_999_999],
  ['sixteen digits', '1000000000000000', Number.NaN],
  ['nothing', '', Number.NaN],
  ['a sign', '-1', Number.NaN],
  ['a dash behind', '1-', Number.NaN],
  ['a fraction', '1.5', Number.NaN],
  ['an exponent', '1e3', Number.NaN],
  ['a blank', ' 1', Number.NaN],
  ['digits of another script', '\u0661', Number.NaN],
])('%s', (_name, digits, number) => {
  expect(digitsIn(`5${digits}5`, 1, 1 + digits.length)).toBe(number)
})
