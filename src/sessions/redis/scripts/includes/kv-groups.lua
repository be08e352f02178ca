-- Stored KV by size and last use. Written only by gateways that have a limit for it, of all or of a tenant.
--   <prefix>k         hash: by session name the bytes of its stored KV, and where tenants have a limit a blank and the
--                     tenant; under `total` their sum, under `=<tenant>` that of a tenant, and under `!<tenant>` the
--                     bytes of the tenant's last KV if they did not fit. Sums and what they are of are lost together
--   <prefix>k:<n>     sorted set: names of sessions with 2^n bytes of KV up to twice that, by time of last use
-- The smallest and the largest group also hold what is smaller and larger.
-- Needs `prefix` and `now`.
local kv_sizes = prefix .. 'k'
local smallest_group, largest_group = 16, 45

local function kv_group_of(bytes)
  local _, exponent = math.frexp(bytes)
  return prefix .. 'k:' .. math.max(smallest_group, math.min(exponent - 1, largest_group))
end

-- The bytes of a session's KV as they are counted, 0 if they are not, and the tenant, if it is limited, else ''.
local function counted_kv(name)
  local bytes, tenant = string.match(redis.call('HGET', kv_sizes, name) or '', '^(%d+) ?(.*)$')
  return tonumber(bytes) or 0, tenant
end

-- Marks the KV of a session as used now, when a turn begins. While the turn runs, no KV of its session is evicted.
local function touch_kv(name)
  local bytes = counted_kv(name)
  if bytes > 0 then
    redis.call('ZADD', kv_group_of(bytes), now, name)
  end
end
