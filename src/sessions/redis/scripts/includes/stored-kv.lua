-- How much KV is stored, by size and last use. Written only by gateways that have a limit for it.
--   <prefix>k         hash: bytes of stored KV by session name, and under `total` their sum
--   <prefix>k:<n>     sorted set: names of the sessions whose KV takes 2^n bytes up to twice that, by the time it was last used
-- The smallest and the largest group also hold what is smaller and larger.
-- Needs `prefix` and `now`.
local kv_sizes = prefix .. 'k'
local smallest_group, largest_group = 16, 45

local function kv_group_key(group)
  return prefix .. 'k:' .. group
end

local function kv_group_of(bytes)
  local _, exponent = math.frexp(bytes)
  return math.max(smallest_group, math.min(exponent - 1, largest_group))
end

local function stored_kv_bytes()
  return tonumber(redis.call('HGET', kv_sizes, 'total')) or 0
end

-- Returns how many bytes the session had.
local function untrack_kv(name)
  local bytes = tonumber(redis.call('HGET', kv_sizes, name)) or 0
  if bytes > 0 then
    redis.call('HDEL', kv_sizes, name)
    redis.call('HINCRBY', kv_sizes, 'total', string.format('%.0f', -bytes))
    redis.call('ZREM', kv_group_key(kv_group_of(bytes)), name)
  end
  return bytes
end

local function track_kv(name, bytes)
  untrack_kv(name)
  if bytes > 0 then
    redis.call('HSET', kv_sizes, name, string.format('%.0f', bytes))
    redis.call('HINCRBY', kv_sizes, 'total', string.format('%.0f', bytes))
    redis.call('ZADD', kv_group_key(kv_group_of(bytes)), now, name)
  end
end
