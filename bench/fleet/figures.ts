import { percentile } from '../statistics.ts'
import type { TurnRow, WayRun } from './measure-way.ts'

/** What a set of turns got. Undefined where no turn of it was answered. */
export interface TurnFigures {
  readonly turns: number
  readonly failures: number
  readonly ttftP50Ms: number | undefined
  readonly ttftP90Ms: number | undefined
  readonly ttftMaxMs: number | undefined
  /** Share of the prompts that was computed. */
  readonly computedShare: number | undefined
  /** Share of what the client had sent before that was computed again. Undefined for first turns. */
  readonly anewShare: number | undefined
  /** How often `x-context-cache` said what: `hit tier=gpu`, `miss reason=no_slot`. */
  readonly reasons: Readonly<Record<string, number>>
}

/** The figures of a way. Later turns are those after the first one of each conversation. */
export interface WayFigures {
  readonly first: TurnFigures
  /** Of what was sent beside first turns. */
  readonly beside: TurnFigures
  readonly later: TurnFigures
  /** Of later turns: the third that was sent last. */
  readonly lastThird: TurnFigures
  /** Of later turns: those that were sent more than a minute after the storm. */
  readonly afterStorm: TurnFigures
}

const afterStormMs = 60_000

export const wayFigures = ({ turns, stormMs }: WayRun): WayFigures => {
  const later = turns.filter(({ turn }) => turn > 1)
  return {
    first: turnFigures(turns.filter(({ turn }) => turn === 1)),
    beside: turnFigures(turns.filter(({ turn }) => turn === 0)),
    later: turnFigures(later),
    lastThird: turnFigures(later.slice(Math.floor((later.length * 2) / 3))),
    afterStorm: turnFigures(later.filter(({ startMs }) => startMs > stormMs + afterStormMs)),
  }
}

const turnFigures = (turns: readonly TurnRow[]): TurnFigures => {
  const answered = turns.filter(({ failure }) => failure === undefined)
  const ttfts = answered.flatMap(({ ttftMs }) => ttftMs ?? [])
  const reasons: Record<string, number> = {}
  for (const { cache } of answered) {
    const kind = kindOf(cache)
    if (kind !== '') reasons[kind] = (reasons[kind] ?? 0) + 1
  }
  return {
    turns: turns.length,
    failures: turns.length - answered.length,
    ttftP50Ms: percentile(ttfts, 0.5),
    ttftP90Ms: percentile(ttfts, 0.9),
    ttftMaxMs: percentile(ttfts, 1),
    computedShare: share(
      answered,
      ({ promptTokens, cachedTokens }) => promptTokens - cachedTokens,
      ({ promptTokens }) => promptTokens,
    ),
    anewShare: share(
      answered,
      ({ promptTokens, cachedTokens, newTokens }) => Math.max(0, promptTokens - cachedTokens - newTokens),
      ({ promptTokens, newTokens }) => promptTokens - newTokens,
    ),
    reasons,
  }
}

/** `hit; tier=store; tokens=2944; load=77ms` is `hit tier=store`. */
const kindOf = (cache: string): string =>
  cache
    .split(';')
    .slice(0, 2)
    .map((part) => part.trim())
    .join(' ')

type Count = (turn: TurnRow) => number

const share = (turns: readonly TurnRow[], part: Count, whole: Count): number | undefined => {
  const sum = (count: Count): number => turns.reduce((total, turn) => total + count(turn), 0)
  return sum(whole) === 0 ? undefined : sum(part) / sum(whole)
}
