export const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** 0 where the whole is. */
export const ratio = (part: number, whole: number): number => (whole > 0 ? part / whole : 0)

/** The smallest of the sorted numbers that at least `share` (0 to 1) of them do not exceed; 0 where there are none. */
export const percentile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length, Math.max(1, Math.ceil(share * sorted.length))) - 1] ?? 0
