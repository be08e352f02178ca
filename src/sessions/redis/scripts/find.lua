#!lua flags=allow-oom
-- Reads a live session, whoever owns it: for operators.
-- ARGV: 1 tombstone ms, 2 session
-- Returns: 'found' with a whole snapshot, or 'none'
--- @include session
--- @include branches
local session = load(ARGV[2])
if not is_live(session) then
  return reply('none')
end
return reply('found', whole_snapshot(session))
