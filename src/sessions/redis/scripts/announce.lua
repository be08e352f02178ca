#!lua
-- Writes an artefact down before an engine is asked to store it.
-- ARGV: 1 prefix, 2 unused, 3 artefact, 4 session, 5 payload, 6 grace ms
-- Returns: 'done'
--- @include arguments
--- @include removals
write_artefact(ARGV[3], ARGV[4], '0 0 0 ' .. ARGV[5])
redis.call('ZADD', removals, now + ARGV[6], 'a:' .. ARGV[3])
return { 0, 'done', now }
