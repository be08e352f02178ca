#!lua
-- Sets the time to live anew from now.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 ttl seconds
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load_owned(ARGV[2], ARGV[3])
if not is_live(session) then
  return reply('none')
end
session[TTL], session[ENDS] = ARGV[4], string.format('%.0f', now + ARGV[4] * 1000)
save(session)
if session[STATE] == active then
  redis.call('ZADD', deadlines, session[ENDS], name_of(session.key))
end
return reply('found', whole_snapshot(session))
