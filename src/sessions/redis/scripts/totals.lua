#!lua flags=no-writes,allow-oom
-- Counts for metrics.
-- ARGV: 1 prefix
-- Returns: 'done' with { queued removals, live sessions, bytes of stored KV where it has a limit }
--- @include arguments
--- @include stored-kv
local kv_bytes = string.format('%.0f', stored_kv_bytes())
return { 0, 'done', now, { redis.call('ZCARD', prefix .. 'removals'), redis.call('ZCARD', prefix .. 'deadlines'), kv_bytes } }
