-- Ends sessions whose deadline has passed and that no turn holds.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 how many at most
-- Returns: 'done' with their number
--- @include session
local ended = 0
for _, name in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, ARGV[3])) do
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
return reply('done', ended)
