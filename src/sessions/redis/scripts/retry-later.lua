#!lua flags=allow-oom
-- Makes a removal due again later.
-- ARGV: 1 unused, 2 removal id, 3 delay ms, 4 the name of its claim
-- Returns: 'done'
--- @include arguments
--- @include removals
if read_removal(ARGV[2]).claim == ARGV[4] then
  redis.call('ZADD', removals, 'XX', now + ARGV[3], ARGV[2])
end
return { 0, 'done', now }
