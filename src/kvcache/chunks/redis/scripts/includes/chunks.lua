-- Chunks by the name that has them, twice over: by the artefacts that hold them, and by those who delete them. Either is a set of chunks
-- for the name at hand, and a hash that counts for every chunk of the salt how many names have it. Both vanish when they are empty.
local held, holders = KEYS[1], KEYS[2]
local claimed, claimers = KEYS[3], KEYS[4]

-- A command takes a limited number of arguments from a script; a chunk with its count makes two.
local batch_size = 500

local function batches(list)
  local all = {}
  for first = 1, #list, batch_size do
    all[#all + 1] = { unpack(list, first, math.min(first + batch_size - 1, #list)) }
  end
  return all
end

local function distinct(chunks)
  local kept, seen = {}, {}
  for _, chunk in ipairs(chunks) do
    if not seen[chunk] then
      seen[chunk] = true
      kept[#kept + 1] = chunk
    end
  end
  return kept
end

-- The chunks that at least one name has, and those that none has.
local function split(counts, chunks)
  local had, free = {}, {}
  for _, batch in ipairs(batches(chunks)) do
    for i, count in ipairs(redis.call('HMGET', counts, unpack(batch))) do
      local part = count and had or free
      part[#part + 1] = batch[i]
    end
  end
  return had, free
end

-- Gives the name chunks that are distinct; those that it has already count once.
local function add(set, counts, chunks)
  for _, batch in ipairs(batches(chunks)) do
    local new = {}
    for i, is_member in ipairs(redis.call('SMISMEMBER', set, unpack(batch))) do
      if is_member == 0 then
        new[#new + 1] = batch[i]
      end
    end
    if #new > 0 then
      local changed = {}
      for i, count in ipairs(redis.call('HMGET', counts, unpack(new))) do
        changed[#changed + 1] = new[i]
        changed[#changed + 1] = (count or 0) + 1
      end
      redis.call('SADD', set, unpack(new))
      redis.call('HSET', counts, unpack(changed))
    end
  end
end

-- Takes all its chunks from the name. Returns those that no other name has. It deletes before it writes: so it gets through when Redis is full.
local function take_all(set, counts)
  local chunks, freed = redis.call('SMEMBERS', set), {}
  redis.call('DEL', set)
  for _, batch in ipairs(batches(chunks)) do
    local gone, changed = {}, {}
    for i, count in ipairs(redis.call('HMGET', counts, unpack(batch))) do
      if count and tonumber(count) > 1 then
        changed[#changed + 1] = batch[i]
        changed[#changed + 1] = count - 1
      else
        gone[#gone + 1] = batch[i]
        freed[#freed + 1] = batch[i]
      end
    end
    if #gone > 0 then
      redis.call('HDEL', counts, unpack(gone))
    end
    if #changed > 0 then
      redis.call('HSET', counts, unpack(changed))
    end
  end
  return freed
end
