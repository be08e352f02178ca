import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import type { KvLimit } from '../../../src/sessions/limits.ts'
import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { ageRedisStore, redisNowMs } from '../../contract/sessions/age-redis-store.ts'
import type { StoreUnderTest } from '../../contract/sessions/store-under-test.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { StoreExercise } from './store-exercise.ts'
import { storeOperation, unitMs } from './store-operation.ts'

const times = { tombstoneSeconds: (10 * unitMs) / 1000, supersededGraceMs: unitMs }
const anyOperations = fc.array(storeOperation, { maxLength: 120, size: 'max' })

let redis: TestRedis
let connection: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  connection = await redis.connect({ commandTimeoutMs: 5000 })
})
afterAll(() => redis.close())

const makeMemory = async (kvLimit: KvLimit): Promise<StoreUnderTest> => {
  let nowMs = Date.UTC(2026, 0, 1)
  return {
    store: createMemorySessionStore({ ...times, nowMs: () => nowMs, kvLimit }),
    nowMs: async () => nowMs,
    advance: async (milliseconds) => {
      nowMs += milliseconds
    },
  }
}

const makeRedis = async (kvLimit: KvLimit): Promise<StoreUnderTest> => {
  await redis.raw.flushdb()
  const onCorrupted = (): never => {
    throw new Error('A record that the store itself wrote cannot be read')
  }
  return {
    store: createRedisSessionStore({ ...times, connection, kvLimit, onCorrupted }),
    nowMs: () => redisNowMs(redis.raw),
    advance: (milliseconds) => ageRedisStore(redis.raw, connection.keyPrefix, milliseconds),
  }
}

describe('session stores under any sequence of operations', () => {
  test('memory and Redis answer alike, and know every artefact that was not removed', async () => {
    const noLimit = { maxBytes: 1e9, threshold: 1 }
    const property = fc.asyncProperty(anyOperations, async (operations) => {
      const memory = new StoreExercise(await makeMemory(noLimit))
      const remote = new StoreExercise(await makeRedis(noLimit))
      for (const operation of operations) {
        expect(await remote.perform(operation)).toEqual(await memory.perform(operation))
      }
    })
    await fc.assert(property, { numRuns: 50 })
  }, 240_000)

  // Which KV is evicted depends on milliseconds, so that the stores are not compared here.
  test.each([
    { name: 'memory', make: makeMemory, numRuns: 60 },
    { name: 'Redis', make: makeRedis, numRuns: 15 },
  ])(
    '$name keeps the limit of stored KV, and the KV of sessions in turns',
    async ({ make, numRuns }) => {
      // Artefacts take 1 to 5 bytes.
      const kvLimit = { maxBytes: 5, threshold: 0.75 }
      const kvBytesOf = async ({ store }: StoreUnderTest) => (await store.sizes()).kvBytes
      const property = fc.asyncProperty(anyOperations, async (operations) => {
        const under = await make(kvLimit)
        const exercise = new StoreExercise(under)
        for (const operation of operations) {
          const evicts = operation.name === 'evict' || operation.name === 'commit'
          const held = evicts ? await exercise.heldKv() : new Map()
          await exercise.perform(operation)
          expect(await kvBytesOf(under)).toBeLessThanOrEqual(kvLimit.maxBytes)
          const kept = evicts ? await exercise.heldKv() : new Map()
          expect([...held].filter(([key, kv]) => kv !== undefined && kept.get(key) === undefined)).toEqual([])
        }
        await under.advance(10 * unitMs)
        await under.store.evict(100)
        expect(await kvBytesOf(under)).toBeLessThanOrEqual(kvLimit.maxBytes * kvLimit.threshold)
      })
      await fc.assert(property, { numRuns })
    },
    240_000,
  )
})
