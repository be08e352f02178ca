-- Lets a removal come again later.
-- KEYS: none
-- ARGV: 1 prefix, 2 unused, 3 removal id, 4 delay ms
-- Returns: 'done'
--- @include arguments
--- @include removals
redis.call('ZADD', removals, 'XX', now + ARGV[4], ARGV[3])
return { 0, 'done', now }
