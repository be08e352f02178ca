#!lua flags=allow-oom
-- Reads a live session, whoever owns it: for operators.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load(ARGV[3])
if not is_live(session) then
  return reply('none')
end
return reply('found', whole_snapshot(session))
