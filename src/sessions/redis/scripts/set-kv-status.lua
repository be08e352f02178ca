#!lua flags=allow-oom
-- Records why a completed turn left no stored KV.
-- ARGV: 1 tombstone ms, 2 session, 3 status
-- Returns: 'done'
--- @include session
local session = load(ARGV[2])
if is_live(session) then
  session[KV_STATUS] = ARGV[3]
  save(session)
end
return reply('done')
