import { markdownTable } from '../statistics.ts'
import type { TurnFigures, WayFigures } from './figures.ts'
import type { WayRun } from './measure-way.ts'
import type { WayName } from './ways.ts'

/** A measured way. */
export interface WayResult {
  readonly way: WayName
  readonly run: WayRun
  readonly figures: WayFigures
}

const titles = ['way, turns', 'turns', 'TTFT p50', 'p90', 'max', 'computed anew', 'in the last third']
const stormTitles = ['p90 in the last third', 'anew 60 s after the storm']

/** The table of all ways: a row for later turns and a row for first turns of each, and one for what was sent beside those. */
export const fleetTable = (results: readonly WayResult[], hasStorm: boolean): string =>
  markdownTable(
    [...titles, ...(hasStorm ? stormTitles : []), 'failures', 'duration', 'x-context-cache'],
    (['later', 'first', 'beside'] as const).flatMap((kind) =>
      results
        .filter(({ figures }) => kind !== 'beside' || figures.beside.turns > 0)
        .map(({ way, run, figures }) => {
          const of = figures[kind]
          const ofLater = (text: string): string => (kind === 'later' ? text : '–')
          const afterStorm = [msText(figures.lastThird.ttftP90Ms), shareText(figures.afterStorm.anewShare)]
          return [
            `${way}, ${kind}`,
            String(of.turns),
            ...[of.ttftP50Ms, of.ttftP90Ms, of.ttftMaxMs].map(msText),
            shareText(of.anewShare),
            ofLater(shareText(figures.lastThird.anewShare)),
            ...(hasStorm ? afterStorm.map(ofLater) : []),
            String(of.failures),
            `${(run.durationMs / 1000).toFixed(0)} s`,
            reasonsText(of),
          ]
        }),
    ),
  )

const msText = (ms: number | undefined): string => (ms === undefined ? '–' : `${ms.toFixed(0)} ms`)

const shareText = (share: number | undefined): string => (share === undefined ? '–' : `${(100 * share).toFixed(1)} %`)

const reasonsText = ({ reasons }: TurnFigures): string =>
  Object.entries(reasons)
    .toSorted(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(', ') || '–'
