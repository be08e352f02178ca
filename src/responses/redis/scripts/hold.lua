#!lua flags=allow-oom
-- Reads the handle of a conversation, and locks it.
-- KEYS: 1 handle
-- ARGV: 1 turn, 2 lock ms
-- Returns: path, bytes of the chain and what is sealed, 'locked', or nothing
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local found = redis.call('HMGET', KEYS[1], 'path', 'bytes', 'sealed', 'lock', 'until')
if not found[3] then
  return false
end
if found[4] and found[4] ~= ARGV[1] and tonumber(found[5]) > now then
  return 'locked'
end
redis.call('HSET', KEYS[1], 'lock', ARGV[1], 'until', string.format('%.0f', now + ARGV[2]))
return { found[1], found[2], found[3] }
