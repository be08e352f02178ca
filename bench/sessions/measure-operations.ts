import { randomInt } from 'node:crypto'
import { type BenchedStore, keyOf, leaseMs, newSession, tenantOf, writeSession } from './realistic-sessions.ts'

/** One operation, microseconds. */
export interface Timing {
  readonly p50: number
  readonly p99: number
}

/** Operations timed one by one. `lookup`: session and lease of a turn (`begin`). `create`: the session itself. */
export type Timings = Readonly<Record<'lookup' | 'create' | 'remove', Timing>>

/** Looks up sessions chosen at random, and creates and deletes others. The number of live sessions stays. */
export const measureOperations = async (
  store: BenchedStore,
  options: {
    readonly series: string
    readonly sessions: number
    readonly lookups: number
    readonly creates: number
    /** No two rounds create the same sessions. */
    readonly round: number
  },
): Promise<Timings> => {
  const { series, sessions, round } = options
  const times = { lookup: [] as number[], create: [] as number[], remove: [] as number[] }
  const timed = async <Result>(name: keyof Timings, work: () => Promise<Result>): Promise<Result> => {
    const startedMs = performance.now()
    const result = await work()
    times[name].push((performance.now() - startedMs) * 1000)
    return result
  }
  for (let count = 0; count < options.lookups; count += 1) {
    const number = randomInt(sessions)
    const turn = { key: keyOf(series, number), tenant: tenantOf(number), turnId: `lookup-${round}-${count}` }
    const begun = await timed('lookup', () => store.begin({ ...turn, leaseMs }))
    if (begun.kind !== 'active') throw new Error(`session ${number} of ${sessions} is ${begun.kind}`)
    await store.abandon(turn)
  }
  const passing = Array.from({ length: options.creates }, (_, count) => newSession(`${series} passing ${round}`, count))
  for (const session of passing) await timed('create', () => store.create(session))
  for (const session of passing) await writeSession(store, session)
  for (const { key, tenant } of passing) {
    if (!(await timed('remove', () => store.remove({ key, tenant })))) throw new Error('a session was not deleted')
  }
  return { lookup: timing(times.lookup), create: timing(times.create), remove: timing(times.remove) }
}

const timing = (microseconds: readonly number[]): Timing => {
  const sorted = Float64Array.from(microseconds).sort()
  const quantile = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? Number.NaN
  return { p50: quantile(0.5), p99: quantile(0.99) }
}
