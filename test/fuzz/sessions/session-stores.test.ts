import { describe, test } from '@jest/globals'
import * as fc from 'fast-check'
import type { TenantLimits } from '../../../src/sessions/limits.ts'
import { clusterUnderTest, redisUnderTest } from '../../contract/sessions/age-redis-store.ts'
import { memoryUnderTest } from '../../contract/sessions/memory-under-test.ts'
import type { StoreUnderTest } from '../../contract/sessions/store-under-test.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { StoreExercise } from './store-exercise.ts'
import { type StoreOperation, storeOperation, storeStart, unitMs } from './store-operation.ts'

/** Little enough that commits have to make room. Artefacts take 1 to 5 bytes. */
const kvLimit = { maxBytes: 8, threshold: 0.75 }
const times = { tombstoneMs: 10 * unitMs, supersededGraceMs: unitMs, kvLimit }
const options = { tombstoneSeconds: times.tombstoneMs / 1000, supersededGraceMs: times.supersededGraceMs, kvLimit }

const anyLimits: fc.Arbitrary<TenantLimits> = fc.oneof(
  fc.constant({}),
  fc.record(
    {
      maxSessions: fc.constantFrom(1, 2),
      maxStoredBytes: fc.integer({ min: 3, max: 6 }),
      maxTurns: fc.constantFrom(1, 2),
    },
    { requiredKeys: [] },
  ),
)

const exercise = (make: (tenantLimits: TenantLimits) => Promise<StoreUnderTest>) =>
  fc.asyncProperty(
    storeStart,
    fc.array(storeOperation, { maxLength: 120, size: 'max' }),
    anyLimits,
    async (start: readonly StoreOperation[], operations: StoreOperation[], tenantLimits) => {
      const run = new StoreExercise(await make(tenantLimits), { ...times, tenantLimits })
      for (const operation of [...start, ...operations]) await run.perform(operation)
    },
  )

describe('whatever is done to it, in any order,', () => {
  const redis = useTestRedis()
  const cluster = useTestRedisCluster({ replicas: 0 })
  const onCorrupted = (): never => {
    throw new Error('A record that the store itself wrote cannot be read')
  }

  test('the memory store does what the model does', async () => {
    await fc.assert(
      exercise(async (tenantLimits) => memoryUnderTest({ ...options, tenantLimits: () => tenantLimits })),
      { numRuns: 100 },
    )
  })

  test.each([1, 5])('the Redis store does what the model does, in %d partitions', async (partitions) => {
    let limits: TenantLimits = {}
    const under = await redisUnderTest(redis(), { ...options, partitions, tenantLimits: () => limits, onCorrupted })
    const makeRedis = async (tenantLimits: TenantLimits): Promise<StoreUnderTest> => {
      await redis().raw.flushdb()
      limits = tenantLimits
      return under
    }
    await fc.assert(exercise(makeRedis), { numRuns: 50 })
  })

  test('the Redis store does what the model does, in a cluster', async () => {
    const make = (tenantLimits: TenantLimits): Promise<StoreUnderTest> =>
      clusterUnderTest(cluster(), { ...options, partitions: 5, tenantLimits: () => tenantLimits, onCorrupted })
    await fc.assert(exercise(make), { numRuns: 25 })
  })
})
