import { randomInt } from 'node:crypto'
import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../src/sessions/session-store.ts'
import { benchSession, keyOf, tenantOf, writeSession } from './realistic-sessions.ts'

/** One operation, microseconds. */
export interface Timing {
  readonly p50: number
  readonly p99: number
}

const timingOf = (microseconds: readonly number[]): Timing => {
  const sorted = Float64Array.from(microseconds).sort()
  const quantile = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? Number.NaN
  return { p50: quantile(0.5), p99: quantile(0.99) }
}

/** Operations timed one after the other. */
export interface Timings {
  /** Session and lease of a turn: `begin`. */
  readonly lookup: Timing
  /** The lease is released: `abandon`. */
  readonly release: Timing
  /** The session itself: `create`. */
  readonly create: Timing
  readonly remove: Timing
}

const leaseMs = 660_000

/** Looks up sessions chosen at random, and creates and deletes others. The number of live sessions stays. */
export const measureOperations = async (
  store: SessionStore & RemovalQueue,
  options: {
    readonly series: string
    readonly sessions: number
    readonly lookups: number
    readonly creates: number
    /** No two rounds create the same sessions. */
    readonly round: number
  },
): Promise<Timings> => {
  const times = { lookup: [] as number[], release: [] as number[], create: [] as number[], remove: [] as number[] }
  const timed = async <Result>(name: keyof typeof times, work: () => Promise<Result>): Promise<Result> => {
    const startedMs = performance.now()
    const result = await work()
    times[name].push((performance.now() - startedMs) * 1000)
    return result
  }
  for (let count = 0; count < options.lookups; count += 1) {
    const number = randomInt(options.sessions)
    const turn = { key: keyOf(options.series, number), turnId: `lookup-${options.round}-${count}` }
    const begun = await timed('lookup', () => store.begin({ ...turn, tenant: tenantOf(number), leaseMs }))
    if (begun.kind !== 'active') throw new Error(`session ${number} of ${options.sessions} is ${begun.kind}`)
    await timed('release', () => store.abandon(turn))
  }
  const passing = Array.from({ length: options.creates }, (_, count) =>
    benchSession(`${options.series} passing ${options.round}`, count),
  )
  for (const { created } of passing) await timed('create', () => store.create(created))
  for (const session of passing) await writeSession(store, session)
  for (const { key, tenant } of passing) {
    if (!(await timed('remove', () => store.remove({ key, tenant })))) throw new Error('a session was not deleted')
  }
  return {
    lookup: timingOf(times.lookup),
    release: timingOf(times.release),
    create: timingOf(times.create),
    remove: timingOf(times.remove),
  }
}
