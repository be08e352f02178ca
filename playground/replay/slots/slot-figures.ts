import { percentile, ratio, sum } from '../statistics.ts'
import type { TraceRequest } from '../trace.ts'

/** What became of one turn. */
export interface TurnRow {
  readonly request: TraceRequest
  /** From its arrival to its first token. */
  readonly ttftMs: number
  /** For a slot. */
  readonly waitedMs: number
  readonly computedTokens: number
  /** Tokens of the prompt that the conversation's turn before had. Undefined: it is the first turn. */
  readonly knownTokens: number | undefined
  readonly isLoaded: boolean
  readonly hadSlot: boolean
}

/** The figures of a replay with slots. Later turns are those after the first one of each conversation. */
export interface SlotFigures {
  readonly first: TurnFigures
  readonly later: TurnFigures
}

/** What a set of turns got. */
export interface TurnFigures {
  readonly turns: number
  readonly ttftMs: { readonly p50: number; readonly p90: number; readonly max: number }
  /** Share of the tokens that the turns before had which was computed again: 0 for first turns. */
  readonly anewShare: number
  /** How long they waited for a slot; 0: not at all. */
  readonly waitMs: { readonly p50: number; readonly p90: number }
  /** Turns that went on without a slot. */
  readonly withoutSlot: number
}

/** Sums the turns up. */
export const slotFigures = (rows: readonly TurnRow[]): SlotFigures => ({
  first: figuresOf(rows.filter(({ knownTokens }) => knownTokens === undefined)),
  later: figuresOf(rows.filter(({ knownTokens }) => knownTokens !== undefined)),
})

const figuresOf = (rows: readonly TurnRow[]): TurnFigures => {
  const ttfts = Float64Array.from(rows, ({ ttftMs }) => ttftMs).sort()
  const waits = Float64Array.from(rows, ({ waitedMs }) => waitedMs).sort()
  const known = sum(rows.map(({ knownTokens = 0 }) => knownTokens))
  const anew = rows.map(({ request, computedTokens, knownTokens = 0 }) =>
    Math.max(0, computedTokens - (request.inputTokens - knownTokens)),
  )
  return {
    turns: rows.length,
    ttftMs: { p50: percentile(ttfts, 0.5), p90: percentile(ttfts, 0.9), max: percentile(ttfts, 1) },
    anewShare: ratio(sum(anew), known),
    waitMs: { p50: percentile(waits, 0.5), p90: percentile(waits, 0.9) },
    withoutSlot: rows.filter(({ hadSlot }) => !hadSlot).length,
  }
}
