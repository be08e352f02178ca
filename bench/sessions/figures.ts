import type { ExpiryFigures } from './expiry.ts'
import type { Footprint } from './fill.ts'
import type { Timings } from './measure-operations.ts'

/** Of one number of sessions. */
export interface SizeFigures extends Footprint {
  readonly sessions: number
  readonly rounds: readonly Timings[]
  /** Redis' own time for a script of the rounds, microseconds. */
  readonly serverMicroseconds: number | undefined
}

export interface StoreFigures {
  readonly sizes: readonly SizeFigures[]
  readonly expiry: ExpiryFigures | undefined
}
