-- Stored KV by size and last use. Written only by gateways that have a limit for it.
--   <prefix>k         hash: bytes of stored KV by session name, and under `total` their sum
--   <prefix>k:<n>     sorted set: names of sessions with 2^n bytes of KV up to twice that, by time of last use
-- The smallest and the largest group also hold what is smaller and larger.
-- Needs `prefix` and `now`.
local kv_sizes = prefix .. 'k'
local smallest_group, largest_group = 16, 45

local function kv_group_of(bytes)
  local _, exponent = math.frexp(bytes)
  return prefix .. 'k:' .. math.max(smallest_group, math.min(exponent - 1, largest_group))
end

-- Marks the KV of a session as used now, when a turn begins. While the turn runs, no KV of its session is evicted.
local function touch_kv(name)
  local bytes = tonumber(redis.call('HGET', kv_sizes, name))
  if bytes then
    redis.call('ZADD', kv_group_of(bytes), now, name)
  end
end
