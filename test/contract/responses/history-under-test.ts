import type { HistoryStore } from '../../../src/responses/history-store.ts'
import { createMemoryHistoryStore } from '../../../src/responses/memory/create-memory-history-store.ts'
import { createRedisHistoryStore } from '../../../src/responses/redis/create-redis-history-store.ts'
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

/** Moves each time that keys under a prefix hold into the past: to the store the same as if that much time went by. */
const script = `
local by = tonumber(ARGV[2])
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
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
  redis.call('PEXPIREAT', key, string.format('%.0f', redis.call('PEXPIRETIME', key) - by))
end`

export const redisHistory = async (redis: TestRedis): Promise<HistoryStoreUnderTest & { readonly prefix: string }> => {
  const connection = await redis.connect()
  return {
    prefix: connection.keyPrefix,
    store: createRedisHistoryStore(connection),
    advance: async (milliseconds) => {
      await redis.raw.eval(script, 0, connection.keyPrefix, milliseconds)
    },
  }
}
