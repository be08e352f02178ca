/** The largest count a store keeps: exact in JavaScript, Lua and Redis, with room for the milliseconds of any date. */
export const largestWhole = 999_999_999_999_999

/** A whole number from 0 to {@link largestWhole}, whatever came in: engines report the counts, and a fraction or NaN must not spoil a record. */
export const toWhole = (value: number): number =>
  Number.isFinite(value) ? Math.min(Math.max(Math.trunc(value), 0), largestWhole) : 0
