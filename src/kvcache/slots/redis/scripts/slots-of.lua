--- @include records
-- ARGV: session. Returns the list of <pod>|<slot> in which KV of the session may lie.
return decode(redis.call('HGET', ledger, 's|' .. ARGV[1])) or {}
