-- How much KV is stored, as far as a limit is kept.
-- KEYS: none
-- ARGV: 1 prefix
-- Returns: 'done' with the bytes
--- @include arguments
--- @include stored-kv
return { 0, 'done', now, string.format('%.0f', stored_kv_bytes()) }
