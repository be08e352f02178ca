import { markdownTable, median, rangeText, spread } from '../statistics.ts'
import type { Footprint } from './fill.ts'
import type { Timings } from './measure-operations.ts'

/** Figures of one number of sessions. */
export interface SizeFigures extends Footprint {
  readonly sessions: number
  readonly rounds: readonly Timings[]
  /** Mean time of a script in Redis during the rounds. */
  readonly serverMicroseconds: number | undefined
}

type Column = readonly [title: string, text: (figures: SizeFigures) => string]

const operation = (title: string, name: keyof Timings, quantile: 'p50' | 'p99'): Column => [
  `${title} ${quantile}`,
  ({ rounds }) => medianText(rounds.map((round) => round[name][quantile])),
]

/** `65.0 (63.1 to 68.4)` */
const medianText = (values: readonly number[]): string =>
  `${median(values).toFixed(1)} (${rangeText(spread(values), 1)})`

const bytesWithKv = ({ bytesPerSession, bytesPerStoredKv }: SizeFigures): number => bytesPerSession + bytesPerStoredKv

const columns: readonly Column[] = [
  ['sessions', ({ sessions }) => sessions.toLocaleString('en')],
  ['bytes each', ({ bytesPerSession }) => bytesPerSession.toFixed(0)],
  ['and with KV', (figures) => bytesWithKv(figures).toFixed(0)],
  operation('lookup', 'lookup', 'p50'),
  operation('lookup', 'lookup', 'p99'),
  operation('create', 'create', 'p50'),
  operation('delete', 'remove', 'p50'),
  ['Redis per script', ({ serverMicroseconds }) => serverMicroseconds?.toFixed(1) ?? '–'],
]

export const sizeTable = (sizes: readonly SizeFigures[]): string =>
  markdownTable(
    columns.map(([title]) => title),
    sizes.map((figures) => columns.map(([, text]) => text(figures))),
  )

/** With stored KV: 575 in Redis, and 1,060 in the memory store, were measured. */
const maxBytesPerSession: Readonly<Record<string, number>> = { redis: 720, cluster: 720, memory: 1150 }
const maxGrowth = 1.3

/** The figures of a store against its limits. Sizes are ordered, the fewest sessions first. */
export const resultTable = (stores: Readonly<Record<string, readonly SizeFigures[]>>): string =>
  markdownTable(
    ['case', 'expected', 'measured', 'holds'],
    Object.entries(stores).flatMap(([name, sizes]) => {
      const [first, last] = [sizes[0], sizes.at(-1)]
      if (first === undefined || last === undefined) return []
      const growth = first.rounds.map(
        ({ lookup }, round) => (last.rounds[round]?.lookup.p50 ?? Number.NaN) / lookup.p50,
      )
      // Operations in memory take microseconds, so that cache misses show: there the limit is logarithmic growth.
      const limit = name === 'memory' ? Math.log(last.sessions) / Math.log(first.sessions) : maxGrowth
      const bytesTitle = `${name}: bytes per session with stored KV, without a connector’s payload`
      return [
        rowOf(bytesTitle, maxBytesPerSession[name] ?? Number.POSITIVE_INFINITY, bytesWithKv(last)),
        rowOf(`${name}: lookup p50, most sessions to fewest, median over rounds`, limit, median(growth)),
      ]
    }),
  )

const rowOf = (title: string, limit: number, value: number): readonly string[] => [
  title,
  `at most ${Number(limit.toFixed(2))}`,
  value.toFixed(2),
  value <= limit ? 'yes' : 'no',
]
