#!lua
-- Writes the handle of a conversation without items.
-- KEYS: 1 index, 2 total, 3 handle
-- ARGV: 1 ttl ms, 2 bytes of the tenant at most, 3 sealed handle
-- Returns: 1, or 0 without room
--- @include ledger
local bytes = per_key + #ARGV[3]
if not has_room(bytes, ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[3], 'path', '', 'bytes', '0', 'sealed', ARGV[3])
charge(KEYS[3], bytes, now + tonumber(ARGV[1]))
return 1
