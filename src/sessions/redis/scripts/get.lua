#!lua flags=allow-oom
-- Reads a live session.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load_owned(ARGV[3], ARGV[4])
if not is_live(session) then
  return reply('none')
end
return reply('found', whole_snapshot(session))
