/** The middle value, or the mean of the two middle ones. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (upper + lower) / 2
}

/** The smallest value that at least `share` of the values do not exceed; undefined for no values. */
export const percentile = (values: readonly number[], share: number): number | undefined =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)]

/** Smallest and largest value. */
export const spread = (values: readonly number[]): readonly [number, number] => [
  Math.min(...values),
  Math.max(...values),
]

/** `0.95 to 1.05` */
export const rangeText = ([low, high]: readonly [number, number], digits: number): string =>
  `${low.toFixed(digits)} to ${high.toFixed(digits)}`

/**
 * 95 % confidence interval of the median, for values of any distribution: two of the values, by the ranks of a binomial
 * distribution. Undefined for fewer than six values.
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

/** A table in Markdown; its first column is text, the others are aligned to the right. */
export const markdownTable = (titles: readonly string[], rows: readonly (readonly string[])[]): string =>
  [titles, ['---', ...Array<string>(titles.length - 1).fill('---:')], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
