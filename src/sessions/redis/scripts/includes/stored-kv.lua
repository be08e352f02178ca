-- How much KV is stored. Written only by gateways that have a limit for it, of all or of a tenant. Needs what arguments.lua
-- declares.
--   k: by artefact `<bytes> <time of last use> <tenant, where tenants have a limit>`; under `total` the sum of all bytes,
--      and under `=<tenant>` that of a tenant. Sums and what they are of are lost together

-- The bytes of an artefact as they are counted, 0 if they are not, the tenant, if it is limited, else '', and when the KV
-- was used last.
local function read_kv(value)
  local bytes, used_ms, tenant = string.match(value or '', '^(%d+) (%d+) (%S*)$')
  return tonumber(bytes) or 0, tenant or '', tonumber(used_ms) or 0
end

local function counted_kv(artefact)
  return read_kv(redis.call('HGET', kv, artefact))
end

local function write_kv(artefact, bytes, tenant)
  redis.call('HSET', kv, artefact, string.format('%.0f %.0f %s', bytes, now, tenant))
end

-- Marks an artefact as used now, when a turn of a session that holds it begins. While the turn runs, it is not evicted.
local function touch_kv(artefact)
  local bytes, tenant = counted_kv(artefact)
  if bytes > 0 then
    write_kv(artefact, bytes, tenant)
  end
end

local function is_sum(field)
  return field == 'total' or string.sub(field, 1, 1) == '='
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

local function untrack_kv(artefact)
  local bytes, tenant = counted_kv(artefact)
  if bytes > 0 then
    redis.call('HDEL', kv, artefact)
    add_kv_bytes(-bytes, tenant)
  end
end

-- `tenant` is '' where tenants have no limit.
local function track_kv(artefact, bytes, tenant)
  untrack_kv(artefact)
  if bytes > 0 then
    write_kv(artefact, bytes, tenant)
    add_kv_bytes(bytes, tenant)
  end
end
