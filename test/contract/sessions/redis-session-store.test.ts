import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { ageRedisStore, redisNowMs } from './age-redis-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import {
  createActive,
  sessionKey,
  storeKv,
  testKvLimit,
  testSupersededGraceMs,
  testTombstoneSeconds,
} from './store-under-test.ts'
import { startTestRedis, type TestRedis } from './test-redis.ts'

let redis: TestRedis

beforeAll(async () => {
  redis = await startTestRedis()
})

afterAll(async () => {
  await redis?.close()
})

describeSessionStore('the Redis session store', async () => {
  const connection = await redis.connect({ commandTimeoutMs: 5000 })
  const store = createRedisSessionStore({
    connection,
    tombstoneSeconds: testTombstoneSeconds,
    supersededGraceMs: testSupersededGraceMs,
    kvLimit: testKvLimit,
    onCorrupted: () => {
      throw new Error('A record that the store itself wrote cannot be read')
    },
  })
  return {
    store,
    nowMs: () => redisNowMs(redis.raw),
    advance: (milliseconds) => ageRedisStore(redis.raw, connection.keyPrefix, milliseconds),
  }
})

test('one script evicts the KV of at most 16 sessions, so that turns of others do not wait', async () => {
  const evicted: number[] = []
  const connection = await redis.connect({ commandTimeoutMs: 5000 })
  const store = createRedisSessionStore({
    connection,
    kvLimit: { maxBytes: 40, threshold: 1 },
    onEvicted: (_what, count) => evicted.push(count),
  })
  const under = { store, nowMs: () => redisNowMs(redis.raw), advance: async () => {} }
  for (const name of Array.from({ length: 40 }, (_, index) => `session-${index}`)) {
    await createActive(under, { key: sessionKey(name) })
    await storeKv(under, `artefact-${name}`, 1, sessionKey(name), 1)
  }
  await createActive(under, { key: sessionKey('large') })

  expect(await storeKv(under, 'artefact-large', 1, sessionKey('large'), 40)).toBe(true)
  expect(evicted).toEqual([16, 16, 8])
})
