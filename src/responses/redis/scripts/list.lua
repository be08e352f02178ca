#!lua flags=no-writes,allow-oom
-- Names keys of a tenant.
-- KEYS: 1 index
-- ARGV: 1 how many at most
-- Returns: members of the index
return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
