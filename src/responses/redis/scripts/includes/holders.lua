--- @include ledger
-- A node is held by its response (`own`), by a conversation that has reached it (`conv`), and by the nodes behind it (`c:`
-- and the suffix of each), each until a deadline. It ends with the last of them.

local function held_until(key)
  local ends = 0
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local is_child = string.sub(field, 1, 2) == 'c:'
    if is_child or field == 'own' or field == 'conv' then
      local deadline = tonumber(redis.call('HGET', key, field))
      if deadline > now then
        ends = math.max(ends, deadline)
      elseif is_child then
        redis.call('HDEL', key, field)
      end
    end
  end
  return ends
end

-- Carries a change of the last node's holders towards the root.
local function settle(path)
  for at = #path, 1, -1 do
    local key, parent = path[at], path[at - 1]
    local ends = held_until(key)
    if ends > 0 then
      charge(key, charged(key), ends)
    elseif exists(key) then
      drop(key)
    end
    if not exists(parent) then
      return
    end
    local field = 'c:' .. suffix_of(key)
    local known = redis.call('HGET', parent, field)
    if known == (ends > 0 and whole(ends)) then
      return
    elseif ends > 0 then
      redis.call('HSET', parent, field, whole(ends))
    else
      redis.call('HDEL', parent, field)
    end
  end
end
