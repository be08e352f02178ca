-- Looks at up to `limit` sessions that the index says are due, and ends those whose deadline has passed and that no
-- turn holds; returns how many, and how many it looked at. Needs what session.lua declares.
local function end_due(limit)
  local ended = 0
  local names = redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    local session = load(name)
    if is_live(session) then
      -- Never later than a deadline to come, even while a turn holds the session: complete.lua relies on it.
      local ends = session[STATE] == active and tonumber(session[ENDS]) or 0
      redis.call('ZADD', deadlines, ends > now and ends or held_until(session), name)
    else
      ended = ended + 1
      -- The record itself may be lost.
      redis.call('ZREM', deadlines, name)
    end
  end
  return ended, #names
end

-- Forgets up to `limit` tombstones and retries whose time is over; returns how many it looked at.
local function forget_due(limit)
  local members = redis.call('ZRANGEBYSCORE', forgets, '-inf', now, 'LIMIT', 0, limit)
  for _, member in ipairs(members) do
    local name = string.sub(member, 2)
    if string.sub(member, 1, 1) == 'r' then
      redis.call('HDEL', retries, name)
    else
      -- A look at it forgets it, or drops what cannot be read.
      read(name)
    end
    redis.call('ZREM', forgets, member)
  end
  return #members
end
