import { median, rangeText, spread } from '../statistics.ts'
import type { Footprint } from './fill.ts'
import type { Timings } from './measure-operations.ts'

/** Figures of one number of sessions. */
export interface SizeFigures extends Footprint {
  readonly sessions: number
  readonly rounds: readonly Timings[]
  /** Mean time of a script in Redis during the rounds. */
  readonly serverMicroseconds: number | undefined
}

const over = (figures: SizeFigures, name: keyof Timings, quantile: 'p50' | 'p99'): readonly number[] =>
  figures.rounds.map((round) => round[name][quantile])

const withSpread = (values: readonly number[]): string =>
  `${median(values).toFixed(1)} (${rangeText(spread(values), 1)})`

export const sizeTable = (sizes: readonly SizeFigures[]): string =>
  [
    '| sessions | bytes each | and with KV | lookup p50 | lookup p99 | release p50 | create p50 | create p99 | delete p50 | delete p99 | Redis per script | write with its turn |',
    `| ---: |${' ---: |'.repeat(11)}`,
    ...sizes.map((figures) => {
      const cells = [
        figures.sessions.toLocaleString('en'),
        figures.bytesPerSession.toFixed(0),
        (figures.bytesPerSession + figures.bytesPerStoredKv).toFixed(0),
        withSpread(over(figures, 'lookup', 'p50')),
        withSpread(over(figures, 'lookup', 'p99')),
        median(over(figures, 'release', 'p50')).toFixed(1),
        median(over(figures, 'create', 'p50')).toFixed(1),
        median(over(figures, 'create', 'p99')).toFixed(1),
        median(over(figures, 'remove', 'p50')).toFixed(1),
        median(over(figures, 'remove', 'p99')).toFixed(1),
        figures.serverMicroseconds?.toFixed(1) ?? '–',
        (figures.secondsPerSession * 1_000_000).toFixed(1),
      ]
      return `| ${cells.join(' | ')} |`
    }),
  ].join('\n')

/** With stored KV: 575 in Redis, and 1,060 in the memory store, were measured. */
const maxBytesPerSession: Readonly<Record<string, number>> = { redis: 700, memory: 1150 }
const maxGrowth = 1.3

/** Operations in memory take microseconds, so that misses of the processor's caches show: there the limit is logarithmic growth. */
const maxGrowthOf = (store: string, sizes: readonly SizeFigures[]): number =>
  store === 'memory' ? Math.log(sizes.at(-1)?.sessions ?? 1) / Math.log(sizes[0]?.sessions ?? 1) : maxGrowth

/** Lookup time with the most sessions to that with the fewest, within each round. */
const growthOf = (sizes: readonly SizeFigures[]): readonly number[] => {
  const [first, last] = [sizes[0], sizes.at(-1)]
  if (first === undefined || last === undefined) return []
  const slow = over(last, 'lookup', 'p50')
  return over(first, 'lookup', 'p50').map((fast, round) => (slow[round] ?? Number.NaN) / fast)
}

export const resultTable = (stores: Readonly<Record<string, readonly SizeFigures[]>>): string => {
  const lines = Object.entries(stores).flatMap(([name, sizes]) => {
    const growth = growthOf(sizes)
    const last = sizes.at(-1)
    const bytes = last === undefined ? undefined : last.bytesPerSession + last.bytesPerStoredKv
    return [
      ...(bytes === undefined
        ? []
        : [
            line(
              `${name}: bytes per session with stored KV, without a connector’s payload`,
              maxBytesPerSession[name] ?? Number.POSITIVE_INFINITY,
              bytes,
            ),
          ]),
      line(`${name}: lookup p50, most sessions to fewest`, maxGrowthOf(name, sizes), median(growth), growth),
    ]
  })
  return ['| case | expected | measured | holds |', '| --- | ---: | ---: | --- |', ...lines].join('\n')
}

const line = (title: string, limit: number, value: number, values?: readonly number[]): string => {
  const range = values === undefined ? '' : ` (${rangeText(spread(values), 2)})`
  return `| ${title} | at most ${Number(limit.toFixed(2))} | ${value.toFixed(2)}${range} | ${value <= limit ? 'yes' : 'no'} |`
}
