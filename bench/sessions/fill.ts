import type { RemovalQueue } from '../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../src/sessions/session-store.ts'
import { type BenchSession, benchSession, storeKv, writeSession } from './realistic-sessions.ts'

const atOnce = 128
const reportEveryMs = 5000

/** Does the work for so many sessions, a number of them at a time. Resolves to how long it took, seconds. */
export const forSessions = async (options: {
  readonly count: number
  readonly session: (number: number) => BenchSession
  readonly work: (session: BenchSession) => Promise<void>
  readonly onProgress?: (done: number) => void
}): Promise<number> => {
  const startedMs = performance.now()
  let next = 0
  let reportedMs = startedMs
  const workSome = async (): Promise<void> => {
    while (next < options.count) {
      const number = next
      next += 1
      await options.work(options.session(number))
      if (performance.now() - reportedMs > reportEveryMs) {
        reportedMs = performance.now()
        options.onProgress?.(number)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, workSome))
  return (performance.now() - startedMs) / 1000
}

/** What sessions take, bytes each. */
export interface Footprint {
  readonly bytesPerSession: number
  /** What a session's stored KV adds, its payload apart. */
  readonly bytesPerStoredKv: number
  /** To write one, many at a time. */
  readonly secondsPerSession: number
}

const storedKvs = 10_000

/** Fills an empty store, and gives some of its sessions KV. */
export const fill = async (
  store: SessionStore & RemovalQueue,
  options: {
    readonly series: string
    readonly sessions: number
    readonly usedBytes: () => Promise<number>
    readonly onProgress?: (done: number) => void
  },
): Promise<Footprint> => {
  const { usedBytes, sessions } = options
  await writeAndRemoveOne(store, `${options.series} first`)
  const empty = await usedBytes()
  const session = (number: number): BenchSession => benchSession(options.series, number)
  const work = (written: BenchSession): Promise<void> => writeSession(store, written)
  const seconds = await forSessions({ ...options, count: sessions, session, work })
  const filled = await usedBytes()
  const withKv = Math.min(sessions, storedKvs)
  await forSessions({ count: withKv, session, work: (written) => storeKv(store, written) })
  return {
    bytesPerSession: (filled - empty) / sessions,
    bytesPerStoredKv: ((await usedBytes()) - filled) / withKv,
    secondsPerSession: seconds / sessions,
  }
}

/** Whatever the first use costs once (Redis keeps the scripts) is no session's cost. */
const writeAndRemoveOne = async (store: SessionStore & RemovalQueue, series: string): Promise<void> => {
  const session = benchSession(series, 0)
  await writeSession(store, session)
  await storeKv(store, session)
  await store.remove(session)
}
