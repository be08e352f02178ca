-- Counts a salt as settled, unless it became unsettled once more.
-- KEYS: 1 open turns, 2 unsettled salts, 3 marks
-- ARGV: 1 salt, 2 mark
-- Returns: nothing
--- @include turns
if redis.call('HGET', marks, ARGV[1]) == ARGV[2] then
  redis.call('ZREM', unsettled, ARGV[1])
  redis.call('HDEL', marks, ARGV[1])
end
