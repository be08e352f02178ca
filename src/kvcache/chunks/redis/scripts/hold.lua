-- Adds a holder to chunks.
-- KEYS: the set of holders of each chunk
-- ARGV: 1 the holder
-- Returns: nothing
for _, holders in ipairs(KEYS) do
  redis.call('SADD', holders, ARGV[1])
end
