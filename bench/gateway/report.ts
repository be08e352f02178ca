import { median, rangeText, spread } from '../statistics.ts'
import { cellName, loadNames } from './cells.ts'
import type { Result, Rounds } from './expectations.ts'
import type { FigureName, Figures } from './measure-cell.ts'

type Column = readonly [title: string, text: (rounds: readonly Figures[]) => string]

const of = (title: string, name: FigureName, digits: number, unit = 1): Column => [
  title,
  (rounds) => {
    const values = rounds.map((figures) => figures[name] / unit)
    const [low, high] = spread(values)
    return [low, median(values), high].map((value) => value.toFixed(digits)).join(' / ')
  },
]

const failures: Column = ['failures', (rounds) => String(rounds.reduce((sum, one) => sum + one.failures, 0))]

const common: readonly Column[] = [
  of('p50 ms', 'p50', 2),
  of('p99 ms', 'p99', 2),
  of('plugin CPU s/1000', 'pluginCpu', 3),
  of('Envoy CPU s/1000', 'envoyCpu', 3),
  of('Redis CPU s/1000', 'redisCpu', 3),
  of('plugin MB', 'pluginBytes', 0, 1_000_000),
  failures,
]

const columns: Readonly<Record<(typeof loadNames)[number], readonly Column[]>> = {
  'closed 2k': [of('requests/s', 'ratePerSecond', 0), ...common],
  'closed 100k': [of('requests/s', 'ratePerSecond', 0), ...common],
  '500 rps': common,
  stream: [
    of('first event ms', 'firstEventP50', 2),
    of('between events ms: p50', 'gapP50', 2),
    of('mean', 'gapMean', 2),
    of('p99', 'gapP99', 2),
    failures,
  ],
}

/** A table for every load, each cell minimum / median / maximum over the rounds. */
export const figureTables = (rounds: Rounds, targets: readonly string[]): string =>
  loadNames
    .flatMap((load) => {
      const measured = targets.flatMap((target) => {
        const figures = rounds.get(cellName(load, target))
        return figures === undefined ? [] : [{ target, figures }]
      })
      if (measured.length === 0) return []
      const titles = columns[load].map(([title]) => title)
      return [
        [
          `${load} (minimum / median / maximum over rounds)`,
          '',
          `| case | ${titles.join(' | ')} |`,
          `| --- |${' ---: |'.repeat(titles.length)}`,
          ...measured.map(
            ({ target, figures }) => `| ${target} | ${columns[load].map(([, text]) => text(figures)).join(' | ')} |`,
          ),
        ].join('\n'),
      ]
    })
    .join('\n\n')

export const resultTable = (results: readonly Result[]): string =>
  [
    '| case | expected | median (minimum to maximum) | 95 % confidence interval | holds |',
    '| --- | ---: | ---: | ---: | --- |',
    ...results.map(({ title, expected, measured, range, interval, holds }) => {
      const text =
        measured === undefined || range === undefined
          ? 'not measured'
          : `${measured.toFixed(2)} (${rangeText(range, 2)})`
      const confidence = interval === undefined ? '–' : rangeText(interval, 2)
      return `| ${title} | ${expected} | ${text} | ${confidence} | ${holds === undefined ? '–' : holds ? 'yes' : 'no'} |`
    }),
  ].join('\n')
