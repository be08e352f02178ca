import { markdownTable, median, rangeText, spread } from '../statistics.ts'
import { cellName, type LoadName, loadNames } from './cells.ts'
import type { FigureName, Figures } from './measure-cell.ts'
import type { Result, Rounds } from './results.ts'

type Column = readonly [title: string, text: (rounds: readonly Figures[]) => string]

const of = (title: string, name: FigureName, digits: number, unit = 1): Column => [
  title,
  (rounds) => {
    const values = rounds.map((figures) => figures[name] / unit)
    const [low, high] = spread(values)
    return [low, median(values), high].map((value) => value.toFixed(digits)).join(' / ')
  },
]

const rate = of('requests/s', 'ratePerSecond', 0)
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

const columns: Readonly<Record<LoadName, readonly Column[]>> = {
  'closed 2k': [rate, ...common],
  'closed 100k': [rate, ...common],
  '500 rps': common,
  stream: [of('between events ms: p50', 'gapP50', 2), of('mean', 'gapMean', 2), of('p99', 'gapP99', 2), failures],
}

/** A table for every load, each cell minimum / median / maximum over the rounds. */
export const figureTables = (rounds: Rounds, targets: readonly string[]): string =>
  loadNames
    .map((load) => ({ load, measured: targets.filter((target) => rounds.has(cellName(load, target))) }))
    .filter(({ measured }) => measured.length > 0)
    .map(({ load, measured }) => {
      const rows = measured.map((target) => {
        const figures = rounds.get(cellName(load, target)) ?? []
        return [target, ...columns[load].map(([, text]) => text(figures))]
      })
      const titles = ['case', ...columns[load].map(([title]) => title)]
      return `${load} (minimum / median / maximum over rounds)\n\n${markdownTable(titles, rows)}`
    })
    .join('\n\n')

export const resultTable = (results: readonly Result[]): string =>
  markdownTable(
    ['case', 'expected', 'median (minimum to maximum)', '95 % confidence interval', 'holds'],
    results.map(({ title, expected, measured, range, interval, holds }) => [
      title,
      expected,
      measured === undefined || range === undefined
        ? 'not measured'
        : `${measured.toFixed(2)} (${rangeText(range, 2)})`,
      interval === undefined ? '–' : rangeText(interval, 2),
      holds === undefined ? '–' : holds ? 'yes' : 'no',
    ]),
  )
