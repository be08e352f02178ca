import { say } from '../bench-process.ts'
import { forEachNumber } from '../for-each-number.ts'
import { markdownTable, median, rangeText, spread } from '../statistics.ts'
import { keyOf, leaseMs, newSession, tenantOf, writeSession } from './realistic-sessions.ts'
import type { StoreUnderBench } from './stores.ts'

const sessions = 10_000
const turnsAtATime = 64
const rounds = 7
const series = 'turns'
const expectedRatio = 0.85

/** Turns a second, each a `begin` and a `complete`, over some seconds. */
const rateOf = async ({ store }: StoreUnderBench, seconds: number, round: number): Promise<number> => {
  const endsMs = performance.now() + seconds * 1000
  let turns = 0
  await forEachNumber(turnsAtATime, turnsAtATime, async (worker) => {
    for (let count = 0; performance.now() < endsMs; count += 1) {
      const number = (worker + count * turnsAtATime) % sessions
      const turn = { key: keyOf(series, number), tenant: tenantOf(number), turnId: `${round}-${worker}-${count}` }
      await store.begin({ ...turn, leaseMs })
      const usage = { prompt: 100, output: 10, cached: 90 }
      await store.complete({ ...turn, pod: '10.0.0.1:8000', usage, expiry: { kind: 'keep' } })
      turns += 1
    }
  })
  return turns / seconds
}

/** Turns of one server and of a cluster of three primaries, by turns in one run. Resolves to a table. */
export const compareTurnRates = async (
  open: Readonly<Record<'redis' | 'cluster', () => Promise<StoreUnderBench>>>,
  seconds: number,
): Promise<string> => {
  const [redis, cluster] = [await open.redis(), await open.cluster()]
  for (const { store } of [redis, cluster]) {
    await forEachNumber(sessions, 128, (number) => writeSession(store, newSession(series, number)))
  }
  const rates: { readonly redis: number; readonly cluster: number }[] = []
  // The first round does not count: code is compiled in it.
  for (let round = 0; round <= rounds; round += 1) {
    const rate = { redis: await rateOf(redis, seconds, round), cluster: await rateOf(cluster, seconds, round) }
    if (round > 0) rates.push(rate)
    say(`turns: round ${round} of ${rounds}`)
  }
  await Promise.all([redis.close(), cluster.close()])
  const ratios = rates.map((rate) => rate.cluster / rate.redis)
  const row = (title: string, values: readonly number[], digits: number): readonly string[] => [
    title,
    `${median(values).toFixed(digits)} (${rangeText(spread(values), digits)})`,
  ]
  return markdownTable(
    [`turns a second, ${turnsAtATime} at a time`, `median of ${rounds} rounds`],
    [
      row(
        'one server',
        rates.map((rate) => rate.redis),
        0,
      ),
      row(
        'three primaries',
        rates.map((rate) => rate.cluster),
        0,
      ),
      row(`ratio (expected: at least ${expectedRatio})`, ratios, 2),
    ],
  )
}
