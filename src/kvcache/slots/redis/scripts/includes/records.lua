-- One hash for each pod: slot -> record (JSON) with owner, content, turn, user, until, saving, task, long, used.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
-- A pod that nobody has used for so long is forgotten: the next sweep erases its slots.
local keepMs = 7 * 24 * 3600 * 1000

-- A record that cannot be read counts as none.
local function parse(text)
  local ok, record = pcall(cjson.decode, text or '')
  if ok and type(record) == 'table' and tonumber(record['until']) and tonumber(record.used) then return record end
  return { ['until'] = 0, used = 0 }
end

local function find(key, slot)
  return parse(redis.call('HGET', key, slot))
end

local function store(key, slot, record)
  redis.call('HSET', key, slot, cjson.encode(record))
  redis.call('PEXPIRE', key, keepMs)
end

local function isHeld(record, lateMs)
  return record.turn ~= nil and record['until'] + (lateMs or 0) > now
end
