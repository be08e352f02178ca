import type { Cluster, Redis } from 'ioredis'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import type { HistoryStore } from '../../../src/responses/history-store.ts'
import { createMemoryHistoryStore } from '../../../src/responses/memory/create-memory-history-store.ts'
import { createRedisHistoryStore } from '../../../src/responses/redis/create-redis-history-store.ts'
import type { TestRedisCluster } from '../../support/redis-cluster/start-test-redis-cluster.ts'
import type { TestRedis } from '../../support/test-redis.ts'

/** A store, and a way to let time go by in it. */
export interface HistoryStoreUnderTest {
  readonly store: HistoryStore
  readonly advance: (milliseconds: number) => Promise<void>
}

export const memoryHistory = (maxBytes = 100_000_000): HistoryStoreUnderTest => {
  let aheadMs = 0
  return {
    store: createMemoryHistoryStore({ maxBytes, now: () => Date.now() + aheadMs }),
    advance: async (milliseconds) => {
      aheadMs += milliseconds
    },
  }
}

/** Moves each time that a key holds into the past: to the store the same as if that much time went by. */
const script = `
local key, by = KEYS[1], tonumber(ARGV[1])
if redis.call('TYPE', key).ok == 'zset' then
  for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    redis.call('ZINCRBY', key, -by, member)
  end
elseif redis.call('TYPE', key).ok == 'hash' then
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if field == 'own' or field == 'conv' or field == 'until' or string.sub(field, 1, 2) == 'c:' then
      redis.call('HINCRBY', key, field, -by)
    end
  end
end
local ends = redis.call('PEXPIRETIME', key)
if ends > 0 then
  redis.call('PEXPIREAT', key, string.format('%.0f', ends - by))
end`

const historyIn = (
  connection: RedisConnection,
  { raw, keys }: { readonly raw: Redis | Cluster; readonly keys: (pattern: string) => Promise<readonly string[]> },
): HistoryStoreUnderTest & { readonly prefix: string } => ({
  prefix: connection.keyPrefix,
  store: createRedisHistoryStore(connection),
  advance: async (milliseconds) => {
    const all = await keys(`${connection.keyPrefix}*`)
    await Promise.all(all.map((key) => raw.eval(script, 1, key, milliseconds)))
  },
})

export const redisHistory = async ({ raw, connect }: Pick<TestRedis, 'raw' | 'connect'>) =>
  historyIn(await connect(), { raw, keys: (pattern) => raw.keys(pattern) })

export const clusterHistory = async (cluster: TestRedisCluster) => historyIn(await cluster.connect(), cluster)
