import { say } from '../bench-process.ts'
import { forEachNumber } from '../for-each-number.ts'
import { newSession, storeKv, writeSession } from './realistic-sessions.ts'
import type { StoreUnderBench } from './stores.ts'

/** What sessions take, bytes each. */
export interface Footprint {
  readonly bytesPerSession: number
  /** What a session's stored KV adds, its payload apart. */
  readonly bytesPerStoredKv: number
}

const concurrency = 128
const storedKvs = 10_000
const sessionsBetweenLines = 100_000

/** Fills an empty store, and gives some of its sessions KV. */
export const fill = async (
  { store, usedBytes }: StoreUnderBench,
  { series, sessions }: { readonly series: string; readonly sessions: number },
): Promise<Footprint> => {
  // What the first use costs once (Redis keeps the scripts) is no session's cost.
  const first = newSession(`${series} first`, 0)
  await writeSession(store, first)
  await storeKv(store, first)
  await store.remove(first)
  const empty = await usedBytes()
  await forEachNumber(sessions, concurrency, async (number) => {
    await writeSession(store, newSession(series, number))
    if (number > 0 && number % sessionsBetweenLines === 0) say(`${series}: ${number} of ${sessions}`)
  })
  const filled = await usedBytes()
  const withKv = Math.min(sessions, storedKvs)
  await forEachNumber(withKv, concurrency, (number) => storeKv(store, newSession(series, number)))
  return {
    bytesPerSession: (filled - empty) / sessions,
    bytesPerStoredKv: ((await usedBytes()) - filled) / withKv,
  }
}
