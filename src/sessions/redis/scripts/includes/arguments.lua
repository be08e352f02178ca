-- What every script begins with. Redis' own clock decides all times. Which keys a script touches follows from the data, so none are
-- declared: Redis Cluster is not supported.
local prefix = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A full Redis lets a script write only after it has deleted something. What ends a turn or a session must get through just then.
local function write_even_when_full()
  redis.call('DEL', prefix .. 'nothing')
end
