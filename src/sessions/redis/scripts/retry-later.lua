#!lua flags=allow-oom
-- Makes a removal due again later.
-- ARGV: 1 prefix, 2 unused, 3 removal id, 4 delay ms, 5 the name of its claim
-- Returns: 'done'
--- @include arguments
--- @include removals
if redis.call('HGET', removal_key(ARGV[3]), 't') == ARGV[5] then
  redis.call('ZADD', removals, 'XX', now + ARGV[4], ARGV[3])
end
return { 0, 'done', now }
