-- Every key of a tenant's history stands in an index, `<bytes> <suffix>` by its deadline, and the bytes in a total.
-- KEYS: 1 index, 2 total
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local index, total = KEYS[1], KEYS[2]
-- bytesPerKey of history-store.ts
local per_key = 512
-- The index is the tenant's prefix and one letter.
local prefix_length = #index - 1

local function whole(number)
  return string.format('%.0f', number)
end

local function suffix_of(key)
  return string.sub(key, prefix_length + 1)
end

local function exists(key)
  return key ~= nil and redis.call('EXISTS', key) == 1
end

local function charged(key)
  return tonumber(redis.call('HGET', key, 'b') or '0')
end

-- The ledger lives as long as the last key in it.
local function keep_ledger(ends)
  if redis.call('PEXPIRETIME', index) < ends then
    redis.call('PEXPIREAT', index, whole(ends))
    redis.call('PEXPIREAT', total, whole(ends))
  end
end

-- Notes what a key takes, and when it ends. The key has its fields already.
local function charge(key, bytes, ends)
  local before = charged(key)
  if before ~= bytes then
    redis.call('ZREM', index, whole(before) .. ' ' .. suffix_of(key))
    redis.call('HSET', key, 'b', whole(bytes))
    redis.call('INCRBY', total, whole(bytes - before))
  end
  redis.call('ZADD', index, whole(ends), whole(bytes) .. ' ' .. suffix_of(key))
  redis.call('PEXPIREAT', key, whole(ends))
  keep_ledger(ends)
end

local function drop(key)
  local bytes = charged(key)
  redis.call('ZREM', index, whole(bytes) .. ' ' .. suffix_of(key))
  redis.call('DECRBY', total, whole(bytes))
  redis.call('DEL', key)
  if not exists(index) then
    redis.call('DEL', total)
  end
end

-- Keys that Redis has expired by itself. A call does a bounded part: what is left counts a little longer.
local expired = redis.call('ZRANGEBYSCORE', index, '-inf', '(' .. whole(now), 'LIMIT', 0, 1000)
if #expired > 0 then
  local bytes = 0
  for _, member in ipairs(expired) do
    bytes = bytes + tonumber(string.match(member, '^%d+'))
  end
  redis.call('ZREM', index, unpack(expired))
  redis.call('DECRBY', total, whole(bytes))
end

local function has_room(bytes, most)
  return tonumber(redis.call('GET', total) or '0') + bytes <= tonumber(most)
end
