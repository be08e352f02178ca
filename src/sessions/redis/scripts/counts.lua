-- Removals that wait, and sessions that live.
-- KEYS: none
-- ARGV: 1 prefix
-- Returns: 'done' with { removals, sessions }
--- @include arguments
return { 0, 'done', now, { redis.call('ZCARD', prefix .. 'removals'), redis.call('ZCARD', prefix .. 'deadlines') } }
