-- What a tenant has in this partition, and whether it may have another session. Needs what session.lua declares.
local function count_of(index, tenant)
  return redis.call('ZLEXCOUNT', index, '[' .. name_of(tenant), '[' .. name_of(tenant) .. '\255')
end

-- Whether the tenant has as many sessions as it may. `most` '' is no limit, `others` what it has in other partitions.
local function has_all_sessions(tenant, most, others)
  return most ~= '' and count_of(lists, tenant) + others >= tonumber(most)
end

-- The reply where the tenant may not have a new session; nil if it may. `is_full`: '1' if its stored KV is too much for one.
local function refusal_of_session(tenant, most, others, is_full)
  if has_all_sessions(tenant, most, others) then
    return reply('limited', 'sessions')
  end
  return is_full == '1' and reply('limited', 'stored-bytes') or nil
end
