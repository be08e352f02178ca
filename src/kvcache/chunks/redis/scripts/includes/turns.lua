-- Open turns, and the salts that they left unsettled.
--   open       sorted set: <salt>:<turn> by the time its lease runs out
--   unsettled  sorted set: salt by the time it became so
--   marks      hash: salt to what tells apart the times that it became so, which only grows
-- Redis' own clock decides.
local open_turns, unsettled, marks = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function member_of(salt, turn)
  return salt .. ':' .. turn
end

local function unsettle(salt, since)
  local microseconds = time[1] * 1000000 + time[2]
  local before = tonumber(redis.call('HGET', marks, salt) or 0)
  redis.call('ZADD', unsettled, 'LT', since, salt)
  redis.call('HSET', marks, salt, string.format('%.0f', math.max(microseconds, before + 1)))
end

-- Whoever looks first notices that leases ran out. Deleting comes first: so it gets through when Redis is full.
local function expire_turns()
  while true do
    local due = redis.call('ZRANGEBYSCORE', open_turns, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1000)
    if #due == 0 then
      return
    end
    for i = 1, #due, 2 do
      redis.call('ZREM', open_turns, due[i])
      unsettle(string.match(due[i], '^[^:]*'), due[i + 1])
    end
  end
end

expire_turns()
