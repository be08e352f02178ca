import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/memory-chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { redisNowMs } from '../sessions/age-redis-store.ts'
import { type ChunkLedgerBed, describeChunkLedger } from './chunk-ledger-suite.ts'

/** Machines that run tests may be busy. */
const patient = { commandTimeoutMs: 10_000 }

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
}, 300_000)
afterAll(() => redis.close())

const redisBed = async (server: TestRedis): Promise<ChunkLedgerBed> => {
  const [here, there] = await Promise.all([server.connect(patient), server.connect(patient)])
  return {
    ledger: createRedisChunkLedger(here),
    elsewhere: createRedisChunkLedger({ ...there, keyPrefix: here.keyPrefix }),
    size: async () => (await server.raw.keys(`${here.keyPrefix}*`)).length,
    lapse: async (milliseconds) => {
      const endsAtMs = (await redisNowMs(server.raw)) + milliseconds
      await eventually(async () => (await redisNowMs(server.raw)) >= endsAtMs)
    },
  }
}

describeChunkLedger('memory', async () => {
  let nowMs = 1_000
  const ledger = createMemoryChunkLedger({ now: () => nowMs })
  return {
    ledger,
    elsewhere: ledger,
    size: async () => ledger.size,
    lapse: async (milliseconds) => {
      nowMs += milliseconds
    },
  }
})

describeChunkLedger('Redis', () => redisBed(redis))

describe('the chunk ledger in Redis', () => {
  test('sends one command for each call, and keeps no key after all is released, deleted and swept', async () => {
    const connection = await redis.connect(patient)
    let trips = 0
    const ledger = createRedisChunkLedger({
      ...connection,
      run: (...call) => {
        trips += 1
        return connection.run(...call)
      },
    })
    await redis.raw.flushall()
    await ledger.open({ salt: 's', turnId: 't', leaseMs: 60_000 })
    await ledger.hold({ salt: 's', name: 'a', chunks: ['c1', 'c2'] })
    await ledger.settle({ salt: 's', turnId: 't', tidy: false })
    await ledger.claimUnheld({ salt: 's', name: 'sweep', chunks: ['c2', 'c3'] })
    await ledger.release({ salt: 's', name: 'a' })
    expect(await redis.raw.dbsize()).toBeGreaterThan(0)
    for (const name of ['a', 'sweep']) await ledger.deleted({ salt: 's', name })
    for (const salt of await ledger.unsettled(10)) await ledger.swept(salt)
    expect(await redis.raw.dbsize()).toBe(0)
    expect(trips).toBe(9)
  })

  test('on a full Redis, refuses to hold, and still settles, releases, deletes and sweeps', async () => {
    const full = await startTestRedis()
    try {
      const bed = await redisBed(full)
      const a = { salt: 's', name: 'a' }
      for (const turnId of ['t1', 't2']) await bed.ledger.open({ salt: 's', turnId, leaseMs: 60_000 })
      await bed.ledger.open({ salt: 'late', turnId: 't3', leaseMs: 1 })
      await bed.ledger.hold({ ...a, chunks: ['c1', 'c2'] })
      await bed.ledger.hold({ salt: 's', name: 'b', chunks: ['c2'] })
      await full.raw.config('SET', 'maxmemory', '1')
      const more = bed.ledger.hold({ salt: 's', name: 'c', chunks: ['c4'] })
      await expect(more).rejects.toBeInstanceOf(RedisUnavailableError)
      await bed.ledger.settle({ salt: 's', turnId: 't1', tidy: true })
      await bed.ledger.settle({ salt: 's', turnId: 't2', tidy: false })
      expect(await bed.ledger.release(a)).toEqual({ unheld: ['c1'], lastOfSalt: false })
      await bed.ledger.deleted(a)
      await bed.ledger.release({ salt: 's', name: 'b' })
      await bed.ledger.deleted({ salt: 's', name: 'b' })
      await bed.lapse(2)
      for (const salt of await bed.ledger.unsettled(10)) await bed.ledger.swept(salt)
      expect(await bed.size()).toBe(0)
    } finally {
      await full.close()
    }
  })

  test('rejects when Redis is unavailable', async () => {
    const gone = await startTestRedis()
    const ledger = createRedisChunkLedger(await gone.connect())
    await gone.close()
    await expect(ledger.release({ salt: 's', name: 'a' })).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(ledger.unsettled(1)).rejects.toBeInstanceOf(RedisUnavailableError)
  })
})
