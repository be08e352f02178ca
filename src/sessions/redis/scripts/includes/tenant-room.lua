-- Whether a tenant may have another session. Needs what session.lua declares.
--- @include expiry
-- A script holds up the turns of all sessions.
local most_ended = 16

-- Which limit forbids it: 'sessions' or 'stored-bytes'; nil: none. '' is no limit.
local function limit_of_session(tenant, most_sessions, most_bytes)
  local function is_full()
    return redis.call('ZCARD', tenant_key(tenant)) >= tonumber(most_sessions)
  end
  if most_sessions ~= '' and is_full() then
    end_due(most_ended)
    if is_full() then
      return 'sessions'
    end
  end
  if most_bytes ~= '' and tenant_kv_bytes(name_of(tenant)) + refused_kv_bytes(name_of(tenant)) > tonumber(most_bytes) then
    return 'stored-bytes'
  end
  return nil
end
