import { expect, test } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { ageRedisStore, redisNowMs } from './age-redis-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { callsOn, sessionKey, testKvLimit, testSupersededGraceMs, testTombstoneSeconds } from './store-under-test.ts'

const redis = useTestRedis()

describeSessionStore('the Redis session store', async () => {
  const connection = await redis().connect({ commandTimeoutMs: 5000 })
  const store = createRedisSessionStore({
    connection,
    tombstoneSeconds: testTombstoneSeconds,
    supersededGraceMs: testSupersededGraceMs,
    kvLimit: testKvLimit,
    onCorrupted: () => {
      throw new Error('The store cannot read a record of its own')
    },
  })
  return {
    store,
    nowMs: () => redisNowMs(redis().raw),
    advance: (milliseconds) => ageRedisStore(redis().raw, connection.keyPrefix, milliseconds),
  }
})

test('one script evicts the KV of at most 16 sessions', async () => {
  const evicted: number[] = []
  const connection = await redis().connect({ commandTimeoutMs: 5000 })
  const store = createRedisSessionStore({
    connection,
    kvLimit: { maxBytes: 40, threshold: 1 },
    onEvicted: (_what, count) => evicted.push(count),
  })
  const under = { store, nowMs: () => redisNowMs(redis().raw), advance: async () => {} }
  const { createActive, storeKv } = callsOn(() => under)
  for (const name of Array.from({ length: 40 }, (_, index) => `session-${index}`)) {
    await createActive({ key: sessionKey(name) })
    await storeKv(`artefact-${name}`, 1, { key: sessionKey(name), bytes: 1 })
  }
  await createActive({ key: sessionKey('large') })

  expect(await storeKv('artefact-large', 1, { key: sessionKey('large'), bytes: 40 })).toBe(true)
  expect(evicted).toEqual([16, 16, 8])
})

test('gateways that share a Redis have one identity, until its data is lost', async () => {
  const connection = await redis().connect({ commandTimeoutMs: 5000 })
  const [first, second] = [createRedisSessionStore({ connection }), createRedisSessionStore({ connection })]
  const identity = await first.identity()
  expect(await second.identity()).toBe(identity)
  await redis().raw.del(`${connection.keyPrefix}store`)
  expect(await second.identity()).not.toBe(identity)
})
