#!lua
-- Replaces what is sealed in a handle.
-- KEYS: 1 index, 2 total, 3 handle
-- ARGV: 1 sealed handle
-- Returns: 1, or 0: there is none
--- @include ledger
local handle = KEYS[3]
if not exists(handle) then
  return 0
end
local more = #ARGV[1] - redis.call('HSTRLEN', handle, 'sealed')
redis.call('HSET', handle, 'sealed', ARGV[1])
charge(handle, charged(handle) + more, redis.call('PEXPIRETIME', handle))
return 1
