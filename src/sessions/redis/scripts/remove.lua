-- Deletes a session: tombstone, and removal queued.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant
-- Returns: 'removed' or 'none'
--- @include session
local session = load_owned(ARGV[3], ARGV[4])
if not is_live(session) then
  return reply('none')
end
entomb(session, deleted)
return reply('removed')
