import { median, medianInterval, spread } from '../statistics.ts'
import { cellName, type LoadName } from './cells.ts'
import type { FigureName, Figures } from './measure-cell.ts'
import { type GatewayCase, targetName, type Wiring } from './targets.ts'

/** The figures of every round, by the cell's name. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>

/** One row of the result: what was expected, what was measured, and whether the expectation holds. */
export interface Result {
  readonly title: string
  readonly expected: string
  /** Median over the rounds. Undefined: not measured. */
  readonly measured: number | undefined
  readonly range: readonly [number, number] | undefined
  /** 95 % confidence interval of the median, see `medianInterval`. Undefined: too few rounds. */
  readonly interval: readonly [number, number] | undefined
  /** Undefined: not measured, or no limit. */
  readonly holds: boolean | undefined
}

interface Expectation {
  readonly title: string
  /** Undefined: reported without a limit. */
  readonly limit: Limit | undefined
  /** One value for each round. */
  readonly values: readonly number[] | undefined
}

type Limit =
  | { readonly kind: 'at least'; readonly value: number }
  | { readonly kind: 'at most'; readonly value: number }
  | { readonly kind: 'within'; readonly low: number; readonly high: number }

/** Rates to the minimal Go server, and the added p50 at 500 requests per second to its own. */
const limits: Readonly<
  Record<Wiring, Readonly<Record<'memory' | 'redis' | 'spliced', number>> & { readonly addedP50?: number }>
> = {
  ext_proc: { memory: 0.7, redis: 0.6, spliced: 0.88, addedP50: 1.4 },
  accelerator: { memory: 1.3, redis: 1, spliced: 1.4 },
}

/** Every ratio is taken within a round, so that noise that lasts longer than a round affects both sides of it. */
export const checkRounds = (rounds: Rounds, wiring: Wiring): readonly Result[] => {
  const figure = (load: LoadName, target: string, name: FigureName): readonly number[] | undefined =>
    rounds.get(cellName(load, target))?.map((figures) => figures[name])
  const ratio = (load: LoadName, gatewayCase: GatewayCase, reference: 'floor' | 'go', name: FigureName) =>
    each(
      (one, other) => one / other,
      figure(load, targetName(wiring, gatewayCase), name),
      figure(load, reference, name),
    )
  const floorP50 = figure('500 rps', 'floor', 'p50')
  const added = (target: string) => each((one, floor) => one - floor, figure('500 rps', target, 'p50'), floorP50)
  const failures = [...rounds].map(([, figures]) => figures.reduce((sum, one) => sum + one.failures, 0))
  const { memory, redis, spliced, addedP50 } = limits[wiring]

  const expectations: readonly Expectation[] = [
    {
      title: 'no session header, 2 KB: rate to the floor',
      limit: atLeast(0.97),
      values: ratio('closed 2k', 'no session', 'floor', 'ratePerSecond'),
    },
    {
      title: 'session, 2 KB, memory: rate to the Go server',
      limit: atLeast(memory),
      values: ratio('closed 2k', 'memory', 'go', 'ratePerSecond'),
    },
    {
      title: 'session, 2 KB, Redis: rate to the Go server',
      limit: atLeast(redis),
      values: ratio('closed 2k', 'redis', 'go', 'ratePerSecond'),
    },
    {
      title: 'session, 100 KB, Redis, one field spliced: rate to the Go server',
      limit: atLeast(spliced),
      values: ratio('closed 100k', 'spliced', 'go', 'ratePerSecond'),
    },
    {
      title: '500 rps, Redis: added p50 to the Go server’s',
      limit: addedP50 === undefined ? undefined : atMost(addedP50),
      values: each((one, go) => one / go, added(targetName(wiring, 'redis')), added('go')),
    },
    {
      title: '500 rps, Redis: p99 to the Go server’s',
      limit: undefined,
      values: ratio('500 rps', 'redis', 'go', 'p99'),
    },
    {
      title: 'streamed answer, Redis: mean time between events to the floor’s',
      limit: { kind: 'within', low: 0.95, high: 1.05 },
      values: ratio('stream', 'redis', 'floor', 'gapMean'),
    },
    { title: 'failures in all measurements', limit: atMost(0), values: [failures.reduce((sum, one) => sum + one, 0)] },
  ]
  return expectations.map(check)
}

const atLeast = (value: number): Limit => ({ kind: 'at least', value })
const atMost = (value: number): Limit => ({ kind: 'at most', value })

const each = (
  combine: (one: number, other: number) => number,
  ones: readonly number[] | undefined,
  others: readonly number[] | undefined,
): readonly number[] | undefined =>
  ones === undefined || others === undefined
    ? undefined
    : ones.slice(0, others.length).map((one, round) => combine(one, others[round] ?? Number.NaN))

const check = ({ title, limit, values = [] }: Expectation): Result => {
  const isMeasured = values.length > 0
  const measured = isMeasured ? median(values) : undefined
  return {
    title,
    expected: limit === undefined ? '–' : limitText(limit),
    measured,
    range: isMeasured ? spread(values) : undefined,
    interval: medianInterval(values),
    holds: measured === undefined || limit === undefined ? undefined : isWithin(measured, limit),
  }
}

const isWithin = (value: number, limit: Limit): boolean => {
  switch (limit.kind) {
    case 'at least':
      return value >= limit.value
    case 'at most':
      return value <= limit.value
    case 'within':
      return value >= limit.low && value <= limit.high
  }
}

const limitText = (limit: Limit): string => {
  switch (limit.kind) {
    case 'at least':
    case 'at most':
      return `${limit.kind} ${limit.value}`
    case 'within':
      return `${limit.low} to ${limit.high}`
  }
}
