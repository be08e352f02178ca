-- Lists salts to sweep, oldest first.
-- KEYS: 1 open turns, 2 unsettled salts, 3 marks
-- ARGV: 1 how many at most
-- Returns: salt, mark and age in milliseconds for each
--- @include turns
local salts = {}
local found = redis.call('ZRANGEBYSCORE', unsettled, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #found, 2 do
  salts[#salts + 1] = { found[i], redis.call('HGET', marks, found[i]), math.max(0, now - found[i + 1]) }
end
return salts
