-- What every script begins with. Redis' own clock decides all times. Which keys a script touches follows from the data,
-- so none are declared: Redis Cluster is not supported. A full Redis runs only scripts with the flag `allow-oom`: those
-- that read, and those that end a turn or a session.
local prefix = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
