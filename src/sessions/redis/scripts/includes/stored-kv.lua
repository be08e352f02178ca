-- How much KV is stored.
--- @include kv-groups
local function stored_kv_bytes()
  return tonumber(redis.call('HGET', kv_sizes, 'total')) or 0
end

-- Of a tenant, by its name.
local function tenant_kv_bytes(tenant)
  return tonumber(redis.call('HGET', kv_sizes, '=' .. tenant)) or 0
end

-- Of a tenant: the bytes of its last KV, if they did not fit.
local function refused_kv_bytes(tenant)
  return tonumber(redis.call('HGET', kv_sizes, '!' .. tenant)) or 0
end

local function add_kv_bytes(bytes, tenant)
  redis.call('HINCRBY', kv_sizes, 'total', string.format('%.0f', bytes))
  if tenant ~= '' and redis.call('HINCRBY', kv_sizes, '=' .. tenant, string.format('%.0f', bytes)) == 0 then
    redis.call('HDEL', kv_sizes, '=' .. tenant, '!' .. tenant)
  end
end

local function untrack_kv(name)
  local bytes, tenant = counted_kv(name)
  if bytes > 0 then
    redis.call('HDEL', kv_sizes, name)
    add_kv_bytes(-bytes, tenant)
    redis.call('ZREM', kv_group_of(bytes), name)
  end
end

-- `tenant` is '' where tenants have no limit.
local function track_kv(name, bytes, tenant)
  untrack_kv(name)
  if bytes > 0 then
    redis.call('HSET', kv_sizes, name, string.format(tenant == '' and '%.0f' or '%.0f %s', bytes, tenant))
    add_kv_bytes(bytes, tenant)
    touch_kv(name)
  end
end
