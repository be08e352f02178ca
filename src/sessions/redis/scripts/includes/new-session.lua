-- Writing a session in state creating, whose first turn holds a lease. Needs what session.lua declares.
local function write_new(fields)
  local key = fields.key
  local created = string.format('%.0f', now)
  local ends = string.format('%.0f', now + fields.ttl_seconds * 1000)
  local session = {
    creating, string.sub(key, #name_of(key) + 1), name_of(fields.tenant), created, ends, fields.ttl_seconds, 0, 0, 0, 0,
    fields.sealed_id, fields.model, fields.pod, '', '', '', fields.retry, take_lease('', fields.turn, now + fields.lease_ms),
    key = key,
  }
  save(session)
  redis.call('ZREM', forgets, 's' .. name_of(key))
  redis.call('ZADD', deadlines, now + fields.lease_ms, name_of(key))
  return session
end
