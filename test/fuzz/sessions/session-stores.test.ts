import { describe, test } from '@jest/globals'
import * as fc from 'fast-check'
import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { ageRedisStore, redisNowMs } from '../../contract/sessions/age-redis-store.ts'
import type { StoreUnderTest } from '../../contract/sessions/store-under-test.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { StoreExercise } from './store-exercise.ts'
import { type StoreOperation, storeOperation, unitMs } from './store-operation.ts'

/** Little enough that commits have to make room. Artefacts take 1 to 5 bytes. */
const kvLimit = { maxBytes: 8, threshold: 0.75 }
const times = { tombstoneMs: 10 * unitMs, supersededGraceMs: unitMs, kvLimit }
const options = { tombstoneSeconds: times.tombstoneMs / 1000, supersededGraceMs: times.supersededGraceMs, kvLimit }

const makeMemory = async (): Promise<StoreUnderTest> => {
  let nowMs = Date.UTC(2026, 0, 1)
  return {
    store: createMemorySessionStore({ nowMs: () => nowMs, ...options }),
    nowMs: async () => nowMs,
    advance: async (milliseconds) => {
      nowMs += milliseconds
    },
  }
}

const exercise = (make: () => Promise<StoreUnderTest>) =>
  fc.asyncProperty(fc.array(storeOperation, { maxLength: 120, size: 'max' }), async (operations: StoreOperation[]) => {
    const run = new StoreExercise(await make(), times)
    for (const operation of operations) await run.perform(operation)
  })

describe('whatever is done to it, in any order,', () => {
  const redis = useTestRedis()

  test('the memory store does what the model does', async () => {
    await fc.assert(exercise(makeMemory), { numRuns: 200 })
  }, 120_000)

  test('the Redis store does what the model does', async () => {
    const connection = await redis().connect({ commandTimeoutMs: 5000 })
    const store = createRedisSessionStore({
      connection,
      ...options,
      onCorrupted: () => {
        throw new Error('A record that the store itself wrote cannot be read')
      },
    })
    const makeRedis = async (): Promise<StoreUnderTest> => {
      await redis().raw.flushdb()
      return {
        store,
        nowMs: () => redisNowMs(redis().raw),
        advance: (milliseconds) => ageRedisStore(redis().raw, connection.keyPrefix, milliseconds),
      }
    }
    await fc.assert(exercise(makeRedis), { numRuns: 50 })
  }, 120_000)
})
