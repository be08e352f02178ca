#!lua
-- Sets the time to live anew from now.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 ttl seconds
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load_owned(ARGV[3], ARGV[4])
if not is_live(session) then
  return reply('none')
end
session[TTL], session[ENDS] = ARGV[5], string.format('%.0f', now + ARGV[5] * 1000)
save(session)
if session[STATE] == active then
  redis.call('ZADD', deadlines, session[ENDS], name_of(session.key))
end
return reply('found', whole_snapshot(session))
