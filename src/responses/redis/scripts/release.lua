#!lua flags=allow-oom
-- Releases the lock of a conversation, if it is this turn's.
-- KEYS: 1 handle
-- ARGV: 1 turn
if redis.call('HGET', KEYS[1], 'lock') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'lock', 'until')
end
