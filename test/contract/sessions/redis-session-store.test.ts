import { expect, jest, test } from '@jest/globals'
import { identityOf } from '../../../src/app/stores.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { redisUnderTest } from './age-redis-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { alice, callsOn, sessionKey, testOptions } from './store-under-test.ts'

const redis = useTestRedis()

const onCorrupted = (): never => {
  throw new Error('The store cannot read a record of its own')
}
// The suite of the cluster has several partitions.
describeSessionStore('the Redis session store', (tenantLimits) =>
  redisUnderTest(redis(), { ...testOptions, partitions: 1, tenantLimits, onCorrupted }),
)

test('one script evicts the KV of at most 16 sessions', async () => {
  const evicted: number[] = []
  const kvLimit = { maxBytes: 40, threshold: 1 }
  const under = await redisUnderTest(redis(), { kvLimit, onEvicted: (_what, count) => evicted.push(count) })
  const { createActive, storeKv } = callsOn(() => under)
  for (const name of Array.from({ length: 40 }, (_, index) => `session-${index}`)) {
    await createActive({ key: sessionKey(name) })
    await storeKv(`artefact-${name}`, 1, { key: sessionKey(name), bytes: 1 })
  }
  await createActive({ key: sessionKey('large') })

  expect(await storeKv('artefact-large', 1, { key: sessionKey('large'), bytes: 40 })).toBe(true)
  expect(evicted).toEqual([16, 16, 8])
})

test('lost counts of stored KV are found again', async () => {
  const under = await redisUnderTest(redis(), { tenantLimits: () => ({ maxStoredBytes: 100 }) })
  const { createActive, storeKv, store } = callsOn(() => under)
  for (const name of ['a', 'b', 'c']) await createActive({ key: sessionKey(name) })
  await storeKv('kv-a', 1, { key: sessionKey('a'), bytes: 60 })
  await redis().raw.del(`${under.prefix}{0}:k`)
  await redis().raw.hset(`${under.prefix}{0}:k`, sessionKey('gone').slice(0, 22), `30 1 ${alice.slice(0, 22)}`)
  await redis().raw.hincrby(`${under.prefix}{0}:k`, `=${alice.slice(0, 22)}`, 30)
  while (await store().recount(1)) {}

  expect(await storeKv('kv-b', 1, { key: sessionKey('b'), bytes: 41 })).toBe(false)
  expect(await storeKv('kv-c', 1, { key: sessionKey('c'), bytes: 40 })).toBe(true)
})

test('without limits of tenants nothing of them is counted', async () => {
  const under = await redisUnderTest(redis(), {})
  const { begin, createActive, storeKv } = callsOn(() => under)
  await createActive()
  await begin()
  await storeKv('kv')
  const keys = await redis().raw.keys(`${under.prefix}{*`)
  // Deadlines, the tenant's list, the sessions.
  expect(keys.map((key) => key.slice(-1)).sort()).toEqual(['d', 'n', 's'])
})

test('an announcement that arrives after its commit queues nothing', async () => {
  const under = await redisUnderTest(redis(), {})
  const { announce, claimAll, createActive, storeKv } = callsOn(() => under)
  await createActive()
  await storeKv('artefact-1')
  await announce('artefact-1', { graceMs: 0 })

  expect(await claimAll()).toEqual({})
})

test.each([
  { who: 'one that runs', order: [0, 2, 1], isKept: true },
  { who: 'one that starts', order: [2, 0, 1], isKept: false },
])('gateways that share a Redis name it alike, also when its data is lost and $who asks first', async (row) => {
  const clock = jest.spyOn(performance, 'now')
  const connection = await redis().connect()
  const gateways = [0, 1, 2].map(() => identityOf(createRedisSessionStore({ connection }), 'pool', 0))
  const namesOf = async (order: readonly number[]): Promise<readonly (string | undefined)[]> => {
    const names: (string | undefined)[] = []
    for (const index of order) names.push(await gateways[index]?.name())
    clock.mockReturnValue(performance.now() + 60_000)
    return names
  }
  const [name, same] = await namesOf([0, 1])
  expect(same).toBe(name)
  await redis().raw.flushall()

  const names = await namesOf(row.order)
  expect(new Set(names).size).toBe(1)
  expect(names.includes(name)).toBe(row.isKept)
  await connection.close()
  expect(await namesOf(row.order)).toEqual(names)
  clock.mockRestore()
})
