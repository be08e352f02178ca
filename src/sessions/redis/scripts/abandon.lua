#!lua flags=allow-oom
-- Releases the lease of a turn that failed.
-- ARGV: 1 tombstone ms, 2 session, 3 turn id
-- Returns: 'done'
--- @include session
local session = load(ARGV[2])
if not session then
  -- It may have been forgotten while the turn ran, and the turn may have left KV in its pod.
  queue_session(ARGV[2])
  return reply('done')
end

local left = release_lease(session[LEASES], ARGV[3])
session[LEASES] = left or session[LEASES]
if session[STATE] == creating and held_until(session) <= now then
  discard(session)
  return reply('done')
end
if left then
  save(session)
  if is_live(session) then
    redis.call('ZADD', deadlines, session[STATE] == active and session[ENDS] or held_until(session), name_of(session.key))
  end
end
if not is_live(session) then
  -- The turn may have left KV in its pod after the session's removal had passed there.
  queue_session(session.key)
end
return reply('done')
