import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/memory-chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import { eventually } from '../../support/eventually.ts'
import { redisNowMs } from '../sessions/age-redis-store.ts'
import type { TestRedis } from '../sessions/test-redis.ts'

/** A ledger of its own for one test, and two ways into it. */
export interface ChunkLedgerBed {
  readonly ledger: ChunkLedger
  /** The same ledger as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: ChunkLedger
  /** How much the ledger keeps, in units of its own. */
  size(): Promise<number>
  /** Lets that much time pass by the ledger's clock. */
  lapse(milliseconds: number): Promise<void>
}

export const memoryBed = async (): Promise<ChunkLedgerBed> => {
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
}

export const redisBed = async (redis: TestRedis): Promise<ChunkLedgerBed> => {
  const [here, there] = await Promise.all([redis.connect(patient), redis.connect(patient)])
  return {
    ledger: createRedisChunkLedger(here),
    elsewhere: createRedisChunkLedger({ ...there, keyPrefix: here.keyPrefix }),
    size: async () => (await redis.raw.keys(`${here.keyPrefix}*`)).length,
    lapse: async (milliseconds) => {
      const endsAtMs = (await redisNowMs(redis.raw)) + milliseconds
      await eventually(async () => (await redisNowMs(redis.raw)) >= endsAtMs)
    },
  }
}

/** Machines that run tests may be busy. */
export const patient = { commandTimeoutMs: 10_000 }
