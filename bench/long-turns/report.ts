import { median, rangeText, spread } from '../statistics.ts'
import type { SessionFigures, TurnFigures } from './measure-session.ts'

/** What was measured with conversations of one length. */
export interface LengthFigures {
  readonly sessions: SessionFigures[]
  /** What the gateway's thread computes for each turn of sessions that go on at once, milliseconds. */
  readonly together: number[]
}

const turnNames = { first: 'first', samePod: 'on its pod', otherPod: 'on another pod' } as const

/** By the tokens of the first prompt: what each turn of a session alone takes. */
export const turnsTable = (figures: ReadonlyMap<number, LengthFigures>): string =>
  [
    '| tokens | turn | waits ms | CPU before it goes on, ms | with events, ms | after its end, ms |',
    '| ---: | --- | ---: | ---: | ---: | ---: |',
    ...[...figures].flatMap(([tokens, { sessions }]) =>
      (['first', 'samePod', 'otherPod'] as const).map((kind) => {
        const middle = (of: (turn: TurnFigures) => number): string =>
          median(sessions.map((session) => of(session[kind]))).toFixed(2)
        const cells = [
          tokens.toLocaleString('en'),
          turnNames[kind],
          middle(({ beginMs }) => beginMs),
          middle(({ cpuMs }) => cpuMs.begin),
          middle(({ cpuMs }) => cpuMs.events),
          middle(({ cpuMs }) => cpuMs.end),
        ]
        return `| ${cells.join(' | ')} |`
      }),
    ),
  ].join('\n')

/** By the tokens of the first prompt: what a turn takes among others, and a removal. */
export const togetherTable = (figures: ReadonlyMap<number, LengthFigures>, atOnce: number): string =>
  [
    `| tokens | CPU for each turn of ${atOnce} sessions at once, ms | to remove a session, ms |`,
    '| ---: | ---: | ---: |',
    ...[...figures].map(([tokens, { sessions, together }]) => {
      const turn = `${median(together).toFixed(2)} (${rangeText(spread(together), 2)})`
      const removal = median(sessions.map(({ removalCpuMs }) => removalCpuMs)).toFixed(2)
      return `| ${tokens.toLocaleString('en')} | ${turn} | ${removal} |`
    }),
  ].join('\n')
