#!lua flags=allow-oom
-- Names the data of this store, and fixes into how many partitions it is split.
-- KEYS: 1 hash: `name` and `partitions`
-- ARGV: 1 name of a store that has none yet, or has lost it, 2 partitions of such a store
-- Returns: { name, partitions }; or nothing if the key is of the layout before partitions
if redis.call('TYPE', KEYS[1]).ok == 'string' then
  return false
end
redis.call('HSETNX', KEYS[1], 'name', ARGV[1])
redis.call('HSETNX', KEYS[1], 'partitions', ARGV[2])
return redis.call('HMGET', KEYS[1], 'name', 'partitions')
