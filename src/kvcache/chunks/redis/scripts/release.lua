-- Takes a holder from chunks.
-- KEYS: the set of holders of each chunk
-- ARGV: 1 the holder
-- Returns: positions of the chunks that nobody holds now
local free = {}
for position, holders in ipairs(KEYS) do
  redis.call('SREM', holders, ARGV[1])
  if redis.call('EXISTS', holders) == 0 then
    free[#free + 1] = position
  end
end
return free
