import * as z from 'zod'
import { batchesOf } from '../../../async/batches-of.ts'
import { loadScript } from '../../../redis/load-script.ts'
import type { RedisConnection } from '../../../redis/redis-connection.ts'
import type { ChunkLedger } from '../chunk-ledger.ts'

/** A script call blocks Redis for about a millisecond. */
const chunksPerCall = 1_000

const positionsReply = z.array(z.int())

/** The ledger of all gateways: a set of holders for each chunk, its salt as hash tag. Redis must not evict keys. */
export const createRedisChunkLedger = (redis: RedisConnection): ChunkLedger => {
  const directory = new URL('./scripts/', import.meta.url)
  const [hold, release] = [loadScript(directory, 'hold'), loadScript(directory, 'release')]
  const keysOf = (salt: string, chunks: readonly string[]): readonly string[] =>
    chunks.map((chunk) => `${redis.keyPrefix}kv:chunks:{${salt}}:${chunk}`)
  return {
    hold: async ({ salt, name, chunks }) => {
      for (const batch of batchesOf(chunks, chunksPerCall)) await redis.run(hold, keysOf(salt, batch), [name])
    },
    release: async ({ salt, name, chunks }) => {
      const free: string[] = []
      for (const batch of batchesOf([...new Set(chunks)], chunksPerCall)) {
        const positions = new Set(positionsReply.parse(await redis.run(release, keysOf(salt, batch), [name])))
        free.push(...batch.filter((_chunk, index) => positions.has(index + 1)))
      }
      return free
    },
  }
}
