/** The middle value, or the mean of the two middle ones. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (upper + lower) / 2
}

/** Smallest and largest value. */
export const spread = (values: readonly number[]): readonly [number, number] => [
  Math.min(...values),
  Math.max(...values),
]

/** `0.95 to 1.05` */
export const rangeText = ([low, high]: readonly [number, number], digits: number): string =>
  `${low.toFixed(digits)} to ${high.toFixed(digits)}`

/**
 * Where the median of ever more values would be, with a certainty of 95 %: between two of the values, whatever they are spread like (the ranks are
 * those of a binomial distribution). Undefined for fewer than six values, which cannot tell it.
 */
export const medianInterval = (values: readonly number[]): readonly [number, number] | undefined => {
  const count = values.length
  if (count < 6) return undefined
  const sorted = [...values].sort((a, b) => a - b)
  const reach = 0.98 * Math.sqrt(count)
  const low = sorted[Math.max(0, Math.floor(count / 2 - reach) - 1)]
  const high = sorted[Math.min(count - 1, Math.ceil(count / 2 + reach))]
  return low === undefined || high === undefined ? undefined : [low, high]
}
