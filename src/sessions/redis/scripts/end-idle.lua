#!lua flags=allow-oom
-- Ends a session that no turn holds, to make room for another one.
-- ARGV: 1 tombstone ms, 2 session
-- Returns: 'done'
--- @include session
local session = load(ARGV[2])
if is_live(session) and held_until(session) <= now then
  end_with_tombstone(session, expired)
end
return reply('done')
