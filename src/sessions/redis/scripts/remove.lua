-- Deletes a session: tombstone, and removal queued. Also an expired one that a turn would start anew when it ends.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant
-- Returns: 'removed' or 'none'
--- @include session
local session = load_owned(ARGV[3], ARGV[4])
local is_reviving = session and session[STATE] == expired and session[LEASES] ~= ''
if not is_live(session) and not is_reviving then
  return reply('none')
end
entomb(session, deleted)
return reply('removed')
