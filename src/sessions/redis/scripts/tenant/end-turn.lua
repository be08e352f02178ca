#!lua flags=allow-oom
-- Ends turns of a tenant.
-- KEYS: 1 as in take-turn.lua
-- ARGV: 1 turn id
-- Returns: nothing
redis.call('ZREM', KEYS[1], ARGV[1])
