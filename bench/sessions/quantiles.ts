/** Of one operation, microseconds. */
export interface Timing {
  readonly p50: number
  readonly p99: number
}

export const timingOf = (microseconds: readonly number[]): Timing => {
  const sorted = Float64Array.from(microseconds).sort()
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }
}

/** Of sorted values. NaN of none. */
export const quantile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
