import { afterAll, beforeAll } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { ageRedisStore, redisNowMs } from './age-redis-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { testKvLimit, testSupersededGraceMs, testTombstoneSeconds } from './store-under-test.ts'
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
