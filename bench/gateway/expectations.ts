import { median, medianInterval, spread } from '../statistics.ts'
import { cellName, type LoadName } from './cells.ts'
import type { FigureName, Figures } from './measure-cell.ts'
import { type GatewayTargetName, type GatewayVariant, targetName } from './targets.ts'

/** The figures of every round, by the cell's name. */
export type Rounds = ReadonlyMap<string, readonly Figures[]>

/** What a measurement should show, and whether it does. */
export interface Verdict {
  readonly title: string
  readonly expected: string
  /** Median over the rounds; undefined: not measured. */
  readonly measured: number | undefined
  readonly range: readonly [number, number] | undefined
  /** How sure the median is, see `medianInterval`. Undefined: too few rounds. */
  readonly interval: readonly [number, number] | undefined
  readonly holds: boolean | undefined
}

interface Expectation {
  readonly title: string
  readonly limit: Limit
  /** One value for each round. */
  readonly values: readonly number[] | undefined
}

type Limit =
  | { readonly kind: 'at least'; readonly value: number }
  | { readonly kind: 'at most'; readonly value: number }
  | { readonly kind: 'within'; readonly low: number; readonly high: number }

/** Every ratio is taken within a round, so that noise that lasts longer falls on both sides of it. */
export const judge = (rounds: Rounds, variant: GatewayVariant): readonly Verdict[] => {
  const figure = (load: LoadName, target: string, name: FigureName): readonly number[] | undefined =>
    rounds.get(cellName(load, target))?.map((figures) => figures[name])
  const mine = (load: LoadName, target: GatewayTargetName, name: FigureName) =>
    figure(load, targetName(target, variant), name)
  const ratio = (load: LoadName, target: GatewayTargetName, reference: 'floor' | 'go', name: FigureName) =>
    each((one, other) => one / other, mine(load, target, name), figure(load, reference, name))
  const floorP50 = figure('500 rps', 'floor', 'p50')
  const added = (values: readonly number[] | undefined) => each((one, floor) => one - floor, values, floorP50)
  const failures = [...rounds.values()].map((of) => of.reduce((sum, one) => sum + one.failures, 0))

  const expectations: readonly Expectation[] = [
    {
      title: 'no session header, 2 KB: rate to the floor',
      limit: atLeast(0.97),
      values: ratio('closed 2k', 'no session', 'floor', 'ratePerSecond'),
    },
    {
      title: 'session, 2 KB, memory: rate to the Go server',
      limit: atLeast(1.2),
      values: ratio('closed 2k', 'memory', 'go', 'ratePerSecond'),
    },
    {
      title: 'session, 2 KB, memory: CPU to the Go server',
      limit: atMost(0.65),
      values: ratio('closed 2k', 'memory', 'go', 'pluginCpu'),
    },
    {
      title: 'session, 2 KB, Redis: rate to the Go server',
      limit: atLeast(1),
      values: ratio('closed 2k', 'redis', 'go', 'ratePerSecond'),
    },
    {
      title: 'session, 2 KB, Redis: CPU to the Go server',
      limit: atMost(1),
      values: ratio('closed 2k', 'redis', 'go', 'pluginCpu'),
    },
    {
      title: 'session, 100 KB, Redis, one field spliced: rate to the Go server',
      limit: atLeast(1.8),
      values: ratio('closed 100k', 'redis, spliced', 'go', 'ratePerSecond'),
    },
    {
      title: 'session, 100 KB, Redis, one field spliced: CPU to the Go server',
      limit: atMost(0.35),
      values: ratio('closed 100k', 'redis, spliced', 'go', 'pluginCpu'),
    },
    {
      title: '500 rps, Redis: added p50 to the Go server’s',
      limit: atMost(0.8),
      values: each(
        (one, go) => one / go,
        added(mine('500 rps', 'redis', 'p50')),
        added(figure('500 rps', 'go', 'p50')),
      ),
    },
    {
      title: '500 rps, memory: p99 to the Go server’s',
      limit: atMost(2),
      values: ratio('500 rps', 'memory', 'go', 'p99'),
    },
    {
      title: '500 rps, Redis: p99 to the Go server’s',
      limit: atMost(2),
      values: ratio('500 rps', 'redis', 'go', 'p99'),
    },
    {
      title: 'streamed answer, Redis: time between events to the floor’s (p50)',
      limit: { kind: 'within', low: 0.95, high: 1.05 },
      values: ratio('stream', 'redis', 'floor', 'gapP50'),
    },
    {
      title: 'streamed answer, Redis: time between events to the floor’s (mean)',
      limit: { kind: 'within', low: 0.95, high: 1.05 },
      values: ratio('stream', 'redis', 'floor', 'gapMean'),
    },
    { title: 'failures in all measurements', limit: atMost(0), values: [failures.reduce((sum, one) => sum + one, 0)] },
  ]
  return expectations.map(verdictOn)
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

const verdictOn = ({ title, limit, values }: Expectation): Verdict => {
  if (values === undefined || values.length === 0) {
    return {
      title,
      expected: limitText(limit),
      measured: undefined,
      range: undefined,
      interval: undefined,
      holds: undefined,
    }
  }
  const measured = median(values)
  const interval = medianInterval(values)
  const holds = isWithin(measured, limit)
  return { title, expected: limitText(limit), measured, range: spread(values), interval, holds }
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
