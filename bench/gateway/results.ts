import { median, medianInterval, spread } from '../statistics.ts'
import { cellName, type LoadName } from './cells.ts'
import type { FigureName, Figures } from './measure-cell.ts'
import { type GatewayCase, targetName, type Wiring } from './targets.ts'

/** The figures of every round, by the cell's name. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>

/** One row of the result: what was expected, what was measured, and whether the expectation holds. */
export type Result = ReturnType<typeof check>

interface Limit {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** Rates to the minimal Go server, and the added p50 at 500 requests per second to its own. */
const limits: Readonly<
  Record<Wiring, Readonly<Record<'memory' | 'redis' | 'spliced', number>> & { readonly addedP50?: number }>
> = {
  ext_proc: { memory: 0.7, redis: 0.6, spliced: 0.88, addedP50: 1.4 },
  // llm-d's picker, measured beside the same Go server, has 0.54 and 0.23.
  picker: { memory: 0.54, redis: 0.5, spliced: 0.41 },
}

/** Every ratio is taken within a round, so that noise that lasts longer than a round affects both sides of it. */
export const checkRounds = (rounds: Rounds, wiring: Wiring): readonly Result[] => {
  const figure = (load: LoadName, target: string, name: FigureName): readonly number[] =>
    rounds.get(cellName(load, target))?.map((figures) => figures[name]) ?? []
  const own = (gatewayCase: GatewayCase): string => targetName(wiring, gatewayCase)
  const ratio = (load: LoadName, target: string, reference: string, name: FigureName = 'ratePerSecond') =>
    each((one, other) => one / other, figure(load, target, name), figure(load, reference, name))
  const floorP50 = figure('500 rps', 'floor', 'p50')
  const added = (target: string) => each((one, floor) => one - floor, figure('500 rps', target, 'p50'), floorP50)
  const failures = [...rounds.values()].flat().reduce((sum, one) => sum + one.failures, 0)
  const { memory, redis, spliced, addedP50 } = limits[wiring]
  const ratioOfConstants = (load: LoadName) => ratio(load, own('constants'), own('no session'))
  const addedRatio = each((one, go) => one / go, added(own('redis')), added('go'))
  const gaps = ratio('stream', own('redis'), 'floor', 'gapMean')
  const byName = (place: 'header' | 'member', limit: Limit) =>
    (['closed 2k', 'closed 100k'] as const).flatMap((load) =>
      (['memory', 'redis'] as const).map((store) =>
        check(
          `session by the client’s name in a ${place}, ${sizes[load]}, ${store}: rate to that by its id`,
          limit,
          ratio(load, own(`${store} by ${place}`), own(store)),
        ),
      ),
    )
  const ratioOfNamesRead = (load: LoadName) => ratio(load, own('no session, names read'), own('no session'))
  const splicedTitle = 'session, 100 KB, Redis, one field spliced: rate to the Go server'
  const gapsTitle = 'streamed answer, Redis: mean time between events to the floor’s'
  return [
    check(
      'no session header, 2 KB: rate to the floor',
      wiring === 'picker' ? {} : { atLeast: 0.97 },
      ratio('closed 2k', own('no session'), 'floor'),
    ),
    check('no session header, constants, 2 KB: rate without them', {}, ratioOfConstants('closed 2k')),
    check('no session header, constants, 100 KB: rate without them', {}, ratioOfConstants('closed 100k')),
    check('no session, names looked for in bodies, 2 KB: rate without', {}, ratioOfNamesRead('closed 2k')),
    check('no session, names looked for in bodies, 100 KB: rate without', {}, ratioOfNamesRead('closed 100k')),
    check('session, 2 KB, memory: rate to the Go server', { atLeast: memory }, ratio('closed 2k', own('memory'), 'go')),
    check('session, 2 KB, Redis: rate to the Go server', { atLeast: redis }, ratio('closed 2k', own('redis'), 'go')),
    check(
      'session, 2 KB, Redis, traced: rate without traces',
      {},
      ratio('closed 2k', own('redis traced'), own('redis')),
    ),
    check(
      'session, 2 KB, memory, responses kept: rate without',
      {},
      ratio('closed 2k', own('memory kept'), own('memory')),
    ),
    ...(['memory', 'redis'] as const).flatMap((store) => [
      check(
        `previous_response_id, history of 2 KB, ${store}: rate to a session with all of it in the body`,
        {},
        ratio('closed 2k', own(`${store} continued 2k`), own(store)),
      ),
      check(
        `previous_response_id, history of 100 KB, ${store}: rate to a session with all of it in the body`,
        {},
        ratio('closed 100k', own(`${store} continued 100k`), own(store)),
      ),
    ]),
    ...byName('header', { atLeast: 0.95 }),
    ...byName('member', {}),
    check(splicedTitle, { atLeast: spliced }, ratio('closed 100k', own('spliced'), 'go')),
    check('500 rps, Redis: added p50 to the Go server’s', { atMost: addedP50 }, addedRatio),
    check('500 rps, Redis: p99 to the Go server’s', {}, ratio('500 rps', own('redis'), 'go', 'p99')),
    check(gapsTitle, { atLeast: 0.95, atMost: 1.05 }, gaps),
    check('failures in all measurements', { atMost: 0 }, [failures]),
  ]
}

const sizes = { 'closed 2k': '2 KB', 'closed 100k': '100 KB' } as const

/** Combines two figures of each round that has both. */
const each = (
  combine: (one: number, other: number) => number,
  ones: readonly number[],
  others: readonly number[],
): readonly number[] => ones.slice(0, others.length).map((one, round) => combine(one, others[round] ?? Number.NaN))

/** `values`: one for each round. Undefined in the result: not measured, no limit, too few rounds for an interval. */
const check = (title: string, { atLeast, atMost }: Limit, values: readonly number[]) => {
  const measured = values.length > 0 ? median(values) : undefined
  const isLimited = atLeast !== undefined || atMost !== undefined
  const isWithin = (value: number): boolean => value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity)
  return {
    title,
    expected: limitText({ atLeast, atMost }),
    measured,
    range: measured === undefined ? undefined : spread(values),
    interval: medianInterval(values),
    holds: measured === undefined || !isLimited ? undefined : isWithin(measured),
  }
}

const limitText = ({ atLeast, atMost }: Limit): string => {
  if (atLeast !== undefined && atMost !== undefined) return `${atLeast} to ${atMost}`
  if (atLeast !== undefined) return `at least ${atLeast}`
  return atMost === undefined ? '–' : `at most ${atMost}`
}
