import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ContextEvents } from '../../src/context/context-events.ts'
import { createReaper } from '../../src/context/reaper.ts'
import { createNoConnector } from '../../src/kvcache/no-connector.ts'
import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../src/sessions/session-store.ts'
import { median } from '../statistics.ts'
import { forSessions } from './fill.ts'
import { quantile } from './quantiles.ts'
import { type BenchSession, benchSession, keyOf, tenantOf, writeSession } from './realistic-sessions.ts'

/** One second of lookups. */
export interface ExpirySecond {
  /** Since the lookups began. */
  readonly second: number
  /** Of lookups that were due in it, milliseconds from when they were. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** How many sessions were ended in it. */
  readonly expired: number
}

export interface ExpiryFigures {
  /** While nothing expired. */
  readonly calm: readonly ExpirySecond[]
  /** While sessions expired, and a little longer. */
  readonly seconds: readonly ExpirySecond[]
  /** Median over the calm seconds. */
  readonly p99BeforeMs: number
  /** Median over the seconds in which sessions expired. */
  readonly p99DuringMs: number
  readonly expired: number
}

export interface ExpiryOptions {
  readonly series: string
  /** Sessions that live on and are looked up. */
  readonly sessions: number
  readonly expiring: number
  readonly calmSeconds: number
  readonly expirySeconds: number
  /** Writing one of them takes so long, seconds. */
  readonly secondsPerWrite: number
  readonly onProgress: (text: string) => void
}

const lookupsPerSecond = 1000
const afterSeconds = 5
/** Writing may take so many times as long as it took before. */
const writeMargin = 2.5
const leaseMs = 660_000
/** Those of a gateway by default. */
const reaperSettings = {
  intervalMs: 1000,
  batchSize: 100,
  removalLeaseMs: 30_000,
  retryDelayMs: 200,
  reconcileIntervalMs: 30_000,
}

/** Times lookups while nothing expires, then while other sessions do, evenly over a time; both under a gateway's own reaper. */
export const measureExpiry = async (
  store: SessionStore & RemovalQueue,
  options: ExpiryOptions,
): Promise<ExpiryFigures> => {
  const expiredBySecond = new Map<number, number>()
  const faults: unknown[] = []
  let phaseStartedMs = performance.now()
  const secondNow = (): number => Math.floor((performance.now() - phaseStartedMs) / 1000)
  const events = eventsFor({
    expired: (count) => void expiredBySecond.set(secondNow(), (expiredBySecond.get(secondNow()) ?? 0) + count),
    fault: (error) => void faults.push(error),
  })
  const phase = async (seconds: number): Promise<readonly ExpirySecond[]> => {
    const reaper = createReaper(
      {
        queue: store,
        connector: createNoConnector(),
        events,
        predictor: { forget: () => {} },
        nowMs: () => performance.now(),
      },
      reaperSettings,
    )
    expiredBySecond.clear()
    phaseStartedMs = performance.now()
    reaper.start()
    const latencies = await pacedLookups(store, options, seconds, (error) => void faults.push(error))
    await reaper.stop()
    if (faults.length > 0) throw new Error(`${faults.length} faults while sessions expired`, { cause: faults[0] })
    return latencies.map((milliseconds, second) => secondOf(second, milliseconds, expiredBySecond.get(second) ?? 0))
  }
  options.onProgress(`lookups for ${options.calmSeconds} s while nothing expires`)
  const calm = await phase(options.calmSeconds)
  const firstAtMs = await writeExpiring(store, options)
  await delay(Math.max(0, firstAtMs - Date.now()))
  options.onProgress(`lookups for ${options.expirySeconds} s while ${options.expiring} sessions expire`)
  const busy = await phase(options.expirySeconds + afterSeconds)
  const p99Of = (of: readonly ExpirySecond[]): number => median(of.map(({ p99Ms }) => p99Ms))
  return {
    calm,
    seconds: busy,
    // In the first second the code is compiled.
    p99BeforeMs: p99Of(calm.slice(1)),
    p99DuringMs: p99Of(busy.filter(({ expired }) => expired > 0)),
    expired: busy.reduce((sum, { expired }) => sum + expired, 0),
  }
}

const secondOf = (second: number, milliseconds: readonly number[], expired: number): ExpirySecond => {
  const sorted = Float64Array.from(milliseconds).sort()
  return { second, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), expired }
}

/** Resolves to when the first of them expires, by this machine's clock, which is the stores' too. */
const writeExpiring = async (store: SessionStore & RemovalQueue, options: ExpiryOptions): Promise<number> => {
  const expectedMs = options.secondsPerWrite * options.expiring * 1000
  const firstAtMs = Date.now() + expectedMs * writeMargin + 2000
  const session = (number: number): BenchSession => {
    const endsAtMs = firstAtMs + (number / options.expiring) * options.expirySeconds * 1000
    return benchSession(`${options.series} expiring`, number, Math.max(1, Math.round((endsAtMs - Date.now()) / 1000)))
  }
  options.onProgress(`writing ${options.expiring} sessions that will expire`)
  await forSessions({ count: options.expiring, session, work: (written) => writeSession(store, written) })
  const lateMs = Date.now() - firstAtMs
  if (lateMs > 0) options.onProgress(`that took ${lateMs} ms too long: so many expire at once`)
  return firstAtMs
}

/** Lookups due by the clock, whatever became of those before. Resolves to their times, by the second in which they were due. */
const pacedLookups = async (
  store: SessionStore,
  options: Pick<ExpiryOptions, 'series' | 'sessions'>,
  seconds: number,
  onFault: (error: unknown) => void,
): Promise<readonly (readonly number[])[]> => {
  const latencies = Array.from({ length: seconds }, (): number[] => [])
  const total = latencies.length * lookupsPerSecond
  const startedMs = performance.now()
  const running = new Set<Promise<void>>()
  const lookUp = async (dueMs: number): Promise<void> => {
    const number = randomInt(options.sessions)
    const turn = { key: keyOf(options.series, number), turnId: `expiry-${dueMs}` }
    const begun = await store.begin({ ...turn, tenant: tenantOf(number), leaseMs })
    latencies[Math.floor((dueMs - startedMs) / 1000)]?.push(performance.now() - dueMs)
    if (begun.kind !== 'active') throw new Error(`a session that should live is ${begun.kind}`)
    await store.abandon(turn)
  }
  for (let sent = 0; sent < total; ) {
    for (; sent < total; sent += 1) {
      const dueMs = startedMs + (sent * 1000) / lookupsPerSecond
      if (dueMs > performance.now()) break
      const lookup: Promise<void> = lookUp(dueMs)
        .catch(onFault)
        .finally(() => void running.delete(lookup))
      running.add(lookup)
    }
    await delay(1)
  }
  await Promise.all(running)
  return latencies
}

/** Told of expired sessions, and of faults, which no bench outlives. */
const eventsFor = (told: {
  readonly expired: (count: number) => void
  readonly fault: (error: unknown) => void
}): ContextEvents => ({
  requestDecided: () => {},
  routed: () => {},
  sessionCreated: () => {},
  sessionDeleted: () => {},
  sessionsExpired: told.expired,
  lookedUp: () => {},
  attached: () => {},
  turnEnded: () => {},
  offloaded: () => {},
  kvUseless: () => {},
  removed: () => {},
  removalPostponed: () => {},
  storeFault: (_operation, error) => told.fault(error),
  fault: (_where, error) => told.fault(error),
})
