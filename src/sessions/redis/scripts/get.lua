#!lua flags=allow-oom
-- Reads a live session.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load_owned(ARGV[2], ARGV[3])
if not is_live(session) then
  return reply('none')
end
return reply('found', whole_snapshot(session))
