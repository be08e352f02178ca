#!lua flags=no-writes,allow-oom
-- Counts of the partition.
-- ARGV: none
-- Returns: 'done' with { queued removals, live sessions, bytes of stored KV where it has a limit }
--- @include arguments
--- @include stored-kv
local kv_bytes = string.format('%.0f', stored_kv_bytes())
return { 0, 'done', now, { redis.call('ZCARD', removals), redis.call('ZCARD', deadlines), kv_bytes } }
