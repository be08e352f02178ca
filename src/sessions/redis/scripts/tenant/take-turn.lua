#!lua
-- Counts a turn of a tenant, if there is room for it. One that is counted already changes only once it has begun again.
-- KEYS: 1 sorted set: ids of the tenant's turns by the end of their leases
-- ARGV: 1 turn id, 2 lease ms, 3 turns at a time at most, 4 '1' if the turn has begun
-- Returns: 'taken', 'known' or 'full'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local is_known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not is_known and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 'full'
end
if is_known and ARGV[4] ~= '1' then
  return 'known'
end
local ends = now + ARGV[2]
redis.call('ZADD', KEYS[1], 'GT', ends, ARGV[1])
redis.call('PEXPIREAT', KEYS[1], ends, 'NX')
redis.call('PEXPIREAT', KEYS[1], ends, 'GT')
return 'taken'
