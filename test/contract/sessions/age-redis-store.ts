import type { Cluster, Redis } from 'ioredis'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import type { TestRedisCluster } from '../../support/redis-cluster/start-test-redis-cluster.ts'
import type { TestRedis } from '../../support/test-redis.ts'
import type { StoreUnderTest } from './store-under-test.ts'

/** Moves each time that a key holds into the past: to the store the same as if that much time went by. */
const script = `
local key, kind, by = KEYS[1], ARGV[1], tonumber(ARGV[2])
local function earlier(text)
  return string.format('%.0f', tonumber(text) - by)
end
local function dated(text)
  return string.format('%013.0f', tonumber(text) - by)
end
local function each_field(change)
  local fields = redis.call('HGETALL', key)
  for at = 1, #fields, 2 do
    local changed = change(fields[at + 1])
    redis.call('HSET', key, fields[at], changed)
  end
end
if kind == 'n' or kind == 'i' then
  for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    redis.call('ZREM', key, member)
    redis.call('ZADD', key, 0, string.sub(member, 1, 22) .. dated(string.sub(member, 23, 35)) .. string.sub(member, 36))
  end
elseif redis.call('TYPE', key).ok == 'zset' then
  for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    redis.call('ZADD', key, earlier(redis.call('ZSCORE', key, member)), member)
  end
elseif kind == 's' then
  each_field(function(text)
    local head, created, ends, tail = string.match(text, '^([^\\n]*\\n[^\\n]*\\n[^\\n]*\\n)(%d+)\\n(%d+)(\\n.*)$')
    local front, leases = string.match(tail, '^(.*\\n)([^\\n]*)$')
    leases = string.gsub(leases, '=(%d+)', function(at) return '=' .. earlier(at) end)
    return head .. earlier(created) .. '\\n' .. earlier(ends) .. front .. leases
  end)
elseif kind == 'b' then
  each_field(function(text)
    local lines = string.gsub(text, '\\n(%d+) (%d+) ', function(branch, used)
      return '\\n' .. branch .. ' ' .. earlier(used) .. ' '
    end)
    return string.gsub(lines, '^%d+', dated)
  end)
elseif kind == 'r' then
  each_field(function(text) return string.gsub(text, '%d+$', earlier) end)
elseif kind == 'k' then
  each_field(function(text) return string.gsub(text, '^(%d+ )(%d+)', function(bytes, used) return bytes .. earlier(used) end) end)
end
local rest = redis.call('PTTL', key)
if rest >= 0 then
  redis.call('PEXPIRE', key, rest - by)
end`

const age = async (raw: Redis | Cluster, keys: readonly string[], milliseconds: number): Promise<void> => {
  for (const key of keys) {
    const kind = /\}:([a-z])$/.exec(key)?.[1] ?? ''
    await raw.eval(script, 1, key, kind, milliseconds)
  }
}

/** Redis' own clock, in milliseconds. */
export const redisNowMs = async (redis: Redis): Promise<number> => {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000)
}

type StoreOptions = Omit<Parameters<typeof createRedisSessionStore>[0], 'connection'>

/** A Redis store, and the prefix of its keys. */
export const redisUnderTest = async (
  { raw, connect }: Pick<TestRedis, 'raw' | 'connect'>,
  options: StoreOptions,
): Promise<StoreUnderTest & { readonly prefix: string }> => {
  const connection = await connect()
  const prefix = connection.keyPrefix
  return {
    prefix,
    store: createRedisSessionStore({ connection, ...options }),
    nowMs: () => redisNowMs(raw),
    advance: async (milliseconds) => age(raw, await raw.keys(`${prefix}*`), milliseconds),
  }
}

/** The same in a cluster, whose nodes have one clock. */
export const clusterUnderTest = async (cluster: TestRedisCluster, options: StoreOptions): Promise<StoreUnderTest> => {
  const connection = await cluster.connect()
  const [node] = cluster.nodes
  if (node === undefined) throw new Error('the cluster has no node')
  return {
    store: createRedisSessionStore({ connection, ...options }),
    nowMs: () => redisNowMs(node.raw),
    advance: async (milliseconds) => age(cluster.raw, await cluster.keys(`${connection.keyPrefix}*`), milliseconds),
  }
}
