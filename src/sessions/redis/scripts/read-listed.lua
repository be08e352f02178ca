#!lua flags=allow-oom
-- Reads sessions of a tenant's list. Those that have ended leave it.
-- ARGV: 1 tombstone ms, 2 tenant's name, 3… places as in listed.lua
-- Returns: 'done' with a whole snapshot for each, or false
--- @include session
--- @include branches
local found = {}
for i = 3, #ARGV do
  local session = load_owned(string.sub(ARGV[i], 14), ARGV[2])
  if is_live(session) then
    found[#found + 1] = whole_snapshot(session)
  else
    redis.call('ZREM', lists, ARGV[2] .. ARGV[i])
    found[#found + 1] = false
  end
end
return reply('done', found)
