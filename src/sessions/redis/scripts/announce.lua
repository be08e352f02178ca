#!lua
-- Writes an artefact down before an engine is asked to store it.
-- ARGV: 1 unused, 2 artefact, 3 session, 4 payload, 5 grace ms
-- Returns: 'done'
--- @include arguments
--- @include removals
--- @include holders
-- A connection that was given up may still deliver it, after the commit.
if #holders_of(ARGV[2]) == 0 then
  write_artefact(ARGV[2], ARGV[3], '0 0 0 ' .. ARGV[4])
  redis.call('ZADD', removals, now + ARGV[5], 'a:' .. ARGV[2])
end
return { 0, 'done', now }
