-- How much KV is stored. Written only by gateways that have a limit for it, of all or of a tenant. Needs what arguments.lua
-- declares.
--   k: by session name `<bytes> <time of last use> <tenant, where tenants have a limit>`; under `total` the sum of all bytes,
--      and under `=<tenant>` that of a tenant. Sums and what they are of are lost together

-- The bytes of a session's KV as they are counted, 0 if they are not, the tenant, if it is limited, else '', and when the
-- KV was used last.
local function read_kv(value)
  local bytes, used_ms, tenant = string.match(value or '', '^(%d+) (%d+) (%S*)$')
  return tonumber(bytes) or 0, tenant or '', tonumber(used_ms) or 0
end

local function counted_kv(name)
  return read_kv(redis.call('HGET', kv, name))
end

local function write_kv(name, bytes, tenant)
  redis.call('HSET', kv, name, string.format('%.0f %.0f %s', bytes, now, tenant))
end

-- Marks the KV of a session as used now, when a turn begins. While the turn runs, no KV of its session is evicted.
local function touch_kv(name)
  local bytes, tenant = counted_kv(name)
  if bytes > 0 then
    write_kv(name, bytes, tenant)
  end
end

-- Of all, or of a tenant by its name.
local function stored_kv_bytes(tenant)
  return tonumber(redis.call('HGET', kv, tenant and '=' .. tenant or 'total')) or 0
end

local function add_kv_bytes(bytes, tenant)
  for _, sum in ipairs(tenant == '' and { 'total' } or { 'total', '=' .. tenant }) do
    if redis.call('HINCRBY', kv, sum, string.format('%.0f', bytes)) == 0 then
      redis.call('HDEL', kv, sum)
    end
  end
end

local function untrack_kv(name)
  local bytes, tenant = counted_kv(name)
  if bytes > 0 then
    redis.call('HDEL', kv, name)
    add_kv_bytes(-bytes, tenant)
  end
end

-- `tenant` is '' where tenants have no limit.
local function track_kv(name, bytes, tenant)
  untrack_kv(name)
  if bytes > 0 then
    write_kv(name, bytes, tenant)
    add_kv_bytes(bytes, tenant)
  end
end
