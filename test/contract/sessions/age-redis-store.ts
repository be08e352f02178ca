import type { Redis } from 'ioredis'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import type { TestRedis } from '../../support/test-redis.ts'
import type { StoreUnderTest } from './store-under-test.ts'

/** Moves each time that keys under a prefix hold into the past: to the store the same as if that much time went by. */
const script = `
local by = tonumber(ARGV[2])
local function earlier(text)
  return string.format('%.0f', tonumber(text) - by)
end
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZADD', key, earlier(redis.call('ZSCORE', key, member)), member)
    end
  elseif string.sub(key, #ARGV[1] + 1, #ARGV[1] + 2) == 's:' then
    local text = redis.call('GET', key)
    local head, created, ends, tail = string.match(text, '^([^\\n]*\\n[^\\n]*\\n[^\\n]*\\n)(%d+)\\n(%d+)(\\n.*)$')
    local front, leases = string.match(tail, '^(.*\\n)([^\\n]*)$')
    leases = string.gsub(leases, '=(%d+)', function(at) return '=' .. earlier(at) end)
    local ended = ends == '0' and ends or earlier(ends)
    redis.call('SET', key, head .. earlier(created) .. '\\n' .. ended .. front .. leases, 'KEEPTTL')
  end
  if kind == 'hash' and string.sub(key, #ARGV[1] + 1, #ARGV[1] + 2) == 'b:' then
    local fields = redis.call('HGETALL', key)
    for at = 1, #fields, 2 do
      local used, mark = string.match(fields[at + 1], '^(%d+)(.*)$')
      redis.call('HSET', key, fields[at], earlier(used) .. mark)
    end
  end
  local rest = redis.call('PTTL', key)
  if rest >= 0 then
    redis.call('PEXPIRE', key, rest - by)
  end
end`

const ageRedisStore = async (redis: Redis, keyPrefix: string, milliseconds: number): Promise<void> => {
  await redis.eval(script, 0, keyPrefix, milliseconds)
}

/** Redis' own clock, in milliseconds. */
export const redisNowMs = async (redis: Redis): Promise<number> => {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
}

/** A Redis store, and the prefix of its keys. */
export const redisUnderTest = async (
  redis: TestRedis,
  options: Omit<Parameters<typeof createRedisSessionStore>[0], 'connection'>,
): Promise<StoreUnderTest & { readonly prefix: string }> => {
  const connection = await redis.connect()
  return {
    prefix: connection.keyPrefix,
    store: createRedisSessionStore({ connection, ...options }),
    nowMs: () => redisNowMs(redis.raw),
    advance: (milliseconds) => ageRedisStore(redis.raw, connection.keyPrefix, milliseconds),
  }
}
