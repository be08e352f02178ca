import { setTimeout as delay } from 'node:timers/promises'
import { say } from '../bench-process.ts'
import { forEachNumber } from '../for-each-number.ts'
import { markdownTable, percentile } from '../statistics.ts'
import type { BenchedStore } from './realistic-sessions.ts'
import { keyOf, leaseMs, newSession, tenantOf, writeSession } from './realistic-sessions.ts'
import type { StoreUnderBench } from './stores.ts'

const lasting = 10_000
const minuteMs = 60_000
/** Of the sweep, and how many sessions a step ends: as the gateway has them. */
const sweepMs = 1_000
const stepSize = 100
const atATime = 8

/** One after the other until `untilMs`: how long each took, ms. */
const turnsUntil = async (store: BenchedStore, series: string, untilMs: () => boolean): Promise<readonly number[]> => {
  const times: number[] = []
  await forEachNumber(atATime, atATime, async (worker) => {
    for (let count = 0; !untilMs(); count += 1) {
      const number = (worker + count * atATime) % lasting
      const turn = { key: keyOf(series, number), tenant: tenantOf(number), turnId: `${worker}-${count}-${series}` }
      const startedMs = performance.now()
      await store.begin({ ...turn, leaseMs })
      times.push(performance.now() - startedMs)
      await store.complete({
        ...turn,
        pod: '10.0.0.1:8000',
        usage: { prompt: 1, output: 1, cached: 0 },
        expiry: { kind: 'keep' },
      })
    }
  })
  return times
}

/** As the gateway's sweep: ends what is due, and takes removals off the queue. Resolves to how many ended. */
const sweep = async (store: BenchedStore): Promise<number> => {
  let count = 0
  for (;;) {
    const { ended, hasMore } = await store.expireDue(stepSize)
    count += ended
    if (!hasMore) break
  }
  for (;;) {
    const removals = await store.claim({ limit: stepSize, leaseMs })
    await store.ack(removals)
    if (removals.length < stepSize) return count
  }
}

/** What turns see while many sessions expire within a minute, beside a minute without. Resolves to a table. */
export const measureExpiries = async (
  name: string,
  open: () => Promise<StoreUnderBench>,
  expiring: number,
): Promise<string> => {
  const { store, close } = await open()
  await forEachNumber(lasting, 128, (number) => writeSession(store, newSession(name, number)))
  say(`${name}: a minute of turns`)
  const quietEndsMs = performance.now() + minuteMs
  const quiet = await turnsUntil(store, name, () => performance.now() > quietEndsMs)
  say(`${name}: writing ${expiring} sessions`)
  await forEachNumber(expiring, 128, (number) => writeSession(store, newSession(`${name} expiring`, number)))
  const due = performance.now()
  // All are written, so all can be due within the same minute.
  await forEachNumber(expiring, 128, async (number) => {
    const ttlSeconds = Math.max(1, Math.ceil(((number % 60) * 1000 + 10_000 - (performance.now() - due)) / 1000))
    await store.setTtl({ key: keyOf(`${name} expiring`, number), tenant: tenantOf(number), ttlSeconds })
  })
  say(`${name}: ${expiring} sessions expire beside turns`)
  let ended = 0
  const sweeping = (async () => {
    while (ended < expiring) {
      ended += await sweep(store)
      await delay(sweepMs)
    }
  })()
  const busy = await turnsUntil(store, name, () => ended >= expiring)
  await sweeping
  const sweptSeconds = (performance.now() - due) / 1000
  await close()
  const row = (title: string, times: readonly number[]): readonly string[] => [
    title,
    times.length.toLocaleString('en'),
    ...[0.5, 0.99, 1].map((share) => (percentile(times, share) ?? Number.NaN).toFixed(2)),
  ]
  return markdownTable(
    [`${name}: lookups, ms`, 'count', 'p50', 'p99', 'max'],
    [
      row('without expiries', quiet),
      row(`${expiring.toLocaleString('en')} expire in ${sweptSeconds.toFixed(0)} s`, busy),
    ],
  )
}
