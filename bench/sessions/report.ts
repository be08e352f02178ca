import { median, rangeText, spread } from '../statistics.ts'
import type { ExpiryFigures, ExpirySecond } from './expiry.ts'
import type { SizeFigures, StoreFigures } from './figures.ts'
import type { Timings } from './measure-operations.ts'

const over = (figures: SizeFigures, name: keyof Timings, quantile: 'p50' | 'p99'): readonly number[] =>
  figures.rounds.map((round) => round[name][quantile])

const withSpread = (values: readonly number[]): string =>
  `${median(values).toFixed(1)} (${rangeText(spread(values), 1)})`

export const sizeTable = ({ sizes }: StoreFigures): string =>
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

const secondsPerLine = 10

/** Every line a few seconds: the median and the worst of their p99s. */
export const expiryTable = ({ calm, seconds }: ExpiryFigures): string => {
  const lines = [secondsLine('before', calm)]
  for (let from = 0; from < seconds.length; from += secondsPerLine) {
    const part = seconds.slice(from, from + secondsPerLine)
    lines.push(secondsLine(`${from} to ${from + part.length}`, part))
  }
  return [
    '| second | expired | lookup p50 ms | lookup p99 ms, median second | lookup p99 ms, worst second |',
    '| --- | ---: | ---: | ---: | ---: |',
    ...lines,
  ].join('\n')
}

const secondsLine = (title: string, seconds: readonly ExpirySecond[]): string => {
  const p99 = seconds.map(({ p99Ms }) => p99Ms)
  const p50 = median(seconds.map(({ p50Ms }) => p50Ms))
  const expired = seconds.reduce((sum, one) => sum + one.expired, 0)
  return `| ${title} | ${expired.toLocaleString('en')} | ${p50.toFixed(2)} | ${median(p99).toFixed(2)} | ${Math.max(...p99).toFixed(2)} |`
}

const maxBytesPerSession = 1_100
const maxGrowth = 1.3

/** What costs microseconds feels the processor's caches: in memory, growth with the logarithm is what is promised. */
const maxGrowthOf = (store: string, { sizes }: StoreFigures): number =>
  store === 'memory' ? Math.log(sizes.at(-1)?.sessions ?? 1) / Math.log(sizes[0]?.sessions ?? 1) : maxGrowth

/** How much slower the lookup is with the most sessions than with the fewest, within each round. */
const growthOf = ({ sizes }: StoreFigures): readonly number[] => {
  const [first, last] = [sizes[0], sizes.at(-1)]
  if (first === undefined || last === undefined) return []
  const slow = over(last, 'lookup', 'p50')
  return over(first, 'lookup', 'p50').map((fast, round) => (slow[round] ?? Number.NaN) / fast)
}

export const verdictTable = (stores: Readonly<Record<string, StoreFigures>>): string => {
  const lines = Object.entries(stores).flatMap(([name, figures]) => {
    const growth = growthOf(figures)
    const last = figures.sizes.at(-1)
    const bytes = last === undefined ? undefined : last.bytesPerSession + last.bytesPerStoredKv
    return [
      ...(bytes === undefined
        ? []
        : [line(`${name}: bytes per session with stored KV, a connector’s payload apart`, maxBytesPerSession, bytes)]),
      line(`${name}: lookup p50, most sessions to fewest`, maxGrowthOf(name, figures), median(growth), growth),
      ...(figures.expiry === undefined
        ? []
        : [
            `| ${name}: lookup p99 while sessions expire to before | no visible step | ${(figures.expiry.p99DuringMs / figures.expiry.p99BeforeMs).toFixed(2)} (${figures.expiry.p99BeforeMs.toFixed(2)} ms to ${figures.expiry.p99DuringMs.toFixed(2)} ms) | – |`,
          ]),
    ]
  })
  return ['| case | expected | measured | holds |', '| --- | ---: | ---: | --- |', ...lines].join('\n')
}

const line = (title: string, limit: number, value: number, values?: readonly number[]): string => {
  const range = values === undefined ? '' : ` (${rangeText(spread(values), 2)})`
  return `| ${title} | at most ${Number(limit.toFixed(2))} | ${value.toFixed(2)}${range} | ${value <= limit ? 'yes' : 'no'} |`
}
