import { codeAt } from './code-at.ts'

const zero = 48

/** More than fifteen digits may not fit into a number. */
const mostDigits = 15

/** The whole number that stands in `text` from `start` up to `end`; NaN for what is none, and for more than fifteen digits. */
export const digitsIn = (text: string, start: number, end: number): number => {
  if (end <= start || end - start > mostDigits) return Number.NaN
  let value = 0
  for (let at = start; at < end; at += 1) {
    const digit = codeAt(text, at) - zero
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    value = value * 10 + digit
  }
  return value
}
