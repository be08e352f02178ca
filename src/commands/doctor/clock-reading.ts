import type { Answer } from '../ask.ts'

/** What a clock showed, against this machine's. */
export interface ClockReading {
  /** `Redis`, `the engine 10.0.0.1:8000` */
  readonly of: string
  /** How far it may be ahead of this machine's, milliseconds: from least to most. */
  readonly leastAheadMs: number
  readonly mostAheadMs: number
}

/** By an answer's header `date`, which has whole seconds. */
export const readClock = (of: string, { date, askedMs, answeredMs }: Answer): readonly ClockReading[] => {
  const atMs = date === undefined ? Number.NaN : Date.parse(date)
  if (Number.isNaN(atMs)) return []
  return [{ of, leastAheadMs: atMs - answeredMs, mostAheadMs: atMs + 1_000 - askedMs }]
}
