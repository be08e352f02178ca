#!lua flags=allow-oom
-- Drops stored KV until it takes no more than it may; that of sessions whose time is over goes first.
-- ARGV: 1 prefix, 2 tombstone ms, 3 bytes that may stay, 4 how many at most
-- Returns: 'done' with how many were dropped
--- @include session
--- @include kv-eviction
local bytes, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
if stored_kv_bytes() <= bytes then
  return reply('done', 0)
end
return reply('done', (evict_kv(bytes, limit)))
