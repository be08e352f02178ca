#!lua flags=allow-oom
-- Deletes a session, also an expired one that a running turn would revive: leaves a tombstone and queues the removal.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant
-- Returns: 'removed' or 'none'
--- @include session
local session = load_owned(ARGV[2], ARGV[3])
local is_reviving = session and session[STATE] == expired and session[LEASES] ~= ''
if not is_live(session) and not is_reviving then
  return reply('none')
end
end_with_tombstone(session, deleted)
return reply('removed')
