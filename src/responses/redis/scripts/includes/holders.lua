--- @include ledger
-- A node is held by its response (`own`), by a conversation that has reached it (`conv`), and by the nodes behind it (`c:`
-- and the suffix of each), each until a deadline. It ends with the last of them.

-- Returns the latest deadline, 0 if nothing holds the node, and the bytes that it is charged.
local function held_until(key)
  local holders = { 'b' }
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if field == 'own' or field == 'conv' or string.sub(field, 1, 2) == 'c:' then
      holders[#holders + 1] = field
    end
  end
  local values = redis.call('HMGET', key, unpack(holders))
  local ends = 0
  for at = 2, #holders do
    local deadline = tonumber(values[at])
    if deadline > now then
      ends = math.max(ends, deadline)
    elseif string.sub(holders[at], 1, 2) == 'c:' then
      redis.call('HDEL', key, holders[at])
    end
  end
  return ends, tonumber(values[1] or '0')
end

-- maxForks of history-store.ts, and the fields beside those of forks.
local most_fields = 1000 + 4

local function too_many_forks(key)
  if redis.call('HLEN', key) <= most_fields then
    return false
  end
  held_until(key) -- Forks that have ended are gone after this.
  return redis.call('HLEN', key) > most_fields
end

-- Carries a change of the last node's holders towards the root. A script does this for each turn of a chain, so it asks
-- for no more than it needs.
local function settle(path)
  local latest = 0
  for at = #path, 1, -1 do
    local key, parent = path[at], path[at - 1]
    local ends, bytes = held_until(key)
    latest = math.max(latest, ends)
    if ends > 0 then
      redis.call('ZADD', index, whole(ends), whole(bytes) .. ' ' .. suffix_of(key))
      redis.call('PEXPIREAT', key, whole(ends))
    elseif bytes > 0 then
      drop(key)
    end
    if not exists(parent) then
      break
    end
    local field = 'c:' .. suffix_of(key)
    local known = redis.call('HGET', parent, field)
    if known == (ends > 0 and whole(ends)) then
      break
    elseif ends > 0 then
      redis.call('HSET', parent, field, whole(ends))
    else
      redis.call('HDEL', parent, field)
    end
  end
  if latest > 0 then
    keep_ledger(latest)
  end
end
