#!lua flags=allow-oom
-- Records why a completed turn left no stored KV.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 status
-- Returns: 'done'
--- @include session
local session = load(ARGV[3])
if is_live(session) then
  session[KV_STATUS] = ARGV[4]
  save(session)
end
return reply('done')
