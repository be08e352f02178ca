-- Turns of a tenant at a time. Needs what arguments.lua declares.
--   <prefix>t:<tenant>   sorted set: ids of turns by the end of their leases. Written only by gateways that limit turns
local function turns_key(tenant)
  return prefix .. 't:' .. string.sub(tenant, 1, 22)
end

-- Whether the tenant may begin the turn, of `most` at a time. '' is no limit.
local function has_turn_room(tenant, turn, most)
  if most == '' then
    return true
  end
  local key = turns_key(tenant)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  return redis.call('ZCARD', key) < tonumber(most) or redis.call('ZSCORE', key, turn) ~= false
end

-- Counts a turn, if there is room for it. False: there is none.
local function count_turn(tenant, turn, lease_ms, most)
  if not has_turn_room(tenant, turn, most) then
    return false
  end
  if most ~= '' then
    local key, ends = turns_key(tenant), now + lease_ms
    redis.call('ZADD', key, 'GT', ends, turn)
    redis.call('PEXPIREAT', key, ends, 'NX')
    redis.call('PEXPIREAT', key, ends, 'GT')
  end
  return true
end

local function uncount_turn(tenant, turn, most)
  if most ~= '' then
    redis.call('ZREM', turns_key(tenant), turn)
  end
end
