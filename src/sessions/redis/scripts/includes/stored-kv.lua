-- How much KV is stored.
--- @include kv-groups
local function stored_kv_bytes()
  return tonumber(redis.call('HGET', kv_sizes, 'total')) or 0
end

local function untrack_kv(name)
  local bytes = tonumber(redis.call('HGET', kv_sizes, name)) or 0
  if bytes > 0 then
    redis.call('HDEL', kv_sizes, name)
    redis.call('HINCRBY', kv_sizes, 'total', string.format('%.0f', -bytes))
    redis.call('ZREM', kv_group_of(bytes), name)
  end
end

local function track_kv(name, bytes)
  untrack_kv(name)
  if bytes > 0 then
    redis.call('HSET', kv_sizes, name, string.format('%.0f', bytes))
    redis.call('HINCRBY', kv_sizes, 'total', string.format('%.0f', bytes))
    touch_kv(name)
  end
end
