-- One hash holds the whole ledger, so that it is lost as a whole or not at all. Its fields:
--   p|<pod>|<slot>  the record of a slot, JSON
--   s|<session>     JSON list of <pod>|<slot> in which KV of the session may lie
--   claims          how many claims there were, for the order of use
local ledger = KEYS[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function decode(text)
  if not text then return nil end
  local ok, value = pcall(cjson.decode, text)
  if ok and type(value) == 'table' then return value end
  return nil
end

local function size(map)
  local count = 0
  for _ in pairs(map) do count = count + 1 end
  return count
end

local function tracesOf(record)
  local traces = {}
  if record.owner then traces[record.owner] = true end
  for _, session in ipairs(record.residues) do traces[session] = true end
  return traces
end

local function endLoad(record)
  record.loader = nil
  record.loaderUntil = nil
  record.content = { kind = 'unknown' }
  record.revision = record.revision + 1
end

local function startLoad(record, turnId, loadMs)
  record.loader = turnId
  record.loaderUntil = now + loadMs
  record.revision = record.revision + 1
end

local function write(record, content)
  record.content = content
  record.revision = record.revision + 1
end

local function letGo(record, turnId)
  record.leases[turnId] = nil
  if record.loader == turnId then endLoad(record) end
end

local function expire(record)
  for turnId, untilMs in pairs(record.leases) do
    if untilMs <= now then record.leases[turnId] = nil end
  end
  if record.loader and record.loaderUntil <= now then endLoad(record) end
end

local function inUse(record)
  return next(record.leases) ~= nil or record.loader ~= nil or record.closedUntil > now
end

local function needsWipe(record)
  return not inUse(record) and (record.content.kind == 'unknown' or #record.residues > 0)
end

-- A record that cannot be read counts as none: its slot is wiped before it is used.
local function parse(text, name)
  local record = decode(text)
  if not (record and record.content and record.leases and record.residues and record.revision) then return nil end
  record.name = name
  record.tracedBefore = tracesOf(record)
  expire(record)
  return record
end

local function find(pod, slot)
  local name = pod .. '|' .. slot
  return parse(redis.call('HGET', ledger, 'p|' .. name), name)
end

local function findOrAdd(pod, slot)
  return find(pod, slot)
    or {
      name = pod .. '|' .. slot,
      tracedBefore = {},
      residues = {},
      content = { kind = 'unknown' },
      closedUntil = 0,
      leases = {},
      used = 0,
      revision = 0,
    }
end

local function unlist(session, name)
  local kept = {}
  for _, listed in ipairs(decode(redis.call('HGET', ledger, 's|' .. session)) or {}) do
    if listed ~= name then kept[#kept + 1] = listed end
  end
  return kept
end

local function storeList(session, names)
  if #names == 0 then
    redis.call('HDEL', ledger, 's|' .. session)
  else
    redis.call('HSET', ledger, 's|' .. session, cjson.encode(names))
  end
end

local function store(record)
  local name, before, traces = record.name, record.tracedBefore, tracesOf(record)
  record.name, record.tracedBefore = nil, nil
  for session in pairs(before) do
    if not traces[session] then storeList(session, unlist(session, name)) end
  end
  for session in pairs(traces) do
    if not before[session] then
      local names = unlist(session, name)
      names[#names + 1] = name
      storeList(session, names)
    end
  end
  redis.call('HSET', ledger, 'p|' .. name, cjson.encode(record))
end
