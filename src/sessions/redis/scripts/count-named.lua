#!lua flags=no-writes,allow-oom
-- How many sessions of a tenant clients' own names choose.
-- ARGV: 1 prefix, 2 tombstone ms, 3 tenant's name
-- Returns: 'done' with the count
--- @include arguments
return { 0, 'done', now, redis.call('ZCARD', prefix .. 'i:' .. ARGV[3]) }
