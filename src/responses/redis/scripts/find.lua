#!lua flags=no-writes,allow-oom
-- Reads a handle.
-- KEYS: 1 handle
-- Returns: path, bytes of the chain and what is sealed, or nothing
local found = redis.call('HMGET', KEYS[1], 'path', 'bytes', 'sealed')
return found[3] and found
