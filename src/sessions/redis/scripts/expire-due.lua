#!lua flags=allow-oom
-- Ends sessions whose deadline has passed and that no turn holds.
-- ARGV: 1 prefix, 2 tombstone ms, 3 how many at most
-- Returns: 'done' with how many were ended and how many looked at
--- @include session
--- @include expiry
return reply('done', { end_due(ARGV[3]) })
