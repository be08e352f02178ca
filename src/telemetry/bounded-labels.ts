import type { LabelRange } from './metric-definitions.ts'

/** Stands for every value beyond a label's range. */
export const otherValue = 'other'

/** Keeps a label within its range, so that nothing from outside can make ever new time series. */
export const createLabelBound = (range: LabelRange): ((value: string) => string) => {
  if (!('atMost' in range)) return (value) => (range.includes(value) ? value : otherValue)
  const seen = new Set<string>()
  return (value) => {
    if (seen.has(value)) return value
    if (seen.size >= range.atMost || value.length > maxLength) return otherValue
    seen.add(value)
    return value
  }
}

const maxLength = 128
