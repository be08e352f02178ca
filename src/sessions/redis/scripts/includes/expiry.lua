-- Ends up to `limit` sessions whose deadline has passed and that no turn holds; returns how many. Needs what session.lua declares.
local function end_due(limit)
  local ended = 0
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, limit)) do
    local session = load(name)
    if is_live(session) then
      local due = held_until(session)
      if session[STATE] == active then
        due = math.max(due, tonumber(session[ENDS]))
      end
      redis.call('ZADD', deadlines, due, name)
    else
      ended = ended + 1
      -- The record itself may be lost.
      redis.call('ZREM', deadlines, name)
    end
  end
  return ended
end
