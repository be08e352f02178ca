#!lua
-- Writes an artefact down before an engine is asked to store it.
-- ARGV: 1 prefix, 2 unused, 3 artefact, 4 session, 5 payload, 6 grace ms
-- Returns: 'done'
--- @include arguments
--- @include removals
-- A connection that was given up may still deliver it, after the commit.
local session = redis.pcall('GET', prefix .. 's:' .. string.sub(ARGV[4], 1, 22))
if type(session) ~= 'string' or not string.find(session, '\n' .. ARGV[3] .. '\n', 1, true) then
  write_artefact(ARGV[3], ARGV[4], '0 0 0 ' .. ARGV[5])
  redis.call('ZADD', removals, now + ARGV[6], 'a:' .. ARGV[3])
end
return { 0, 'done', now }
