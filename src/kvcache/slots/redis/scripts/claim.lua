--- @include records
-- ARGV: pod, session, turn, lease ms, load ms, JSON list of {id, idle}
-- Returns JSON {slot, role, content, others, revision}, or nothing when there is no room.
local pod, session, turnId = ARGV[1], ARGV[2], ARGV[3]
local leaseMs, loadMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local contentRank = { holds = 0, clean = 1, unknown = 2 }

local function flag(condition)
  return condition and 0 or 1
end

-- Compares keys of equal length, lower first.
local function isBefore(a, b)
  for i = 1, #a.rank do
    if a.rank[i] ~= b.rank[i] then return a.rank[i] < b.rank[i] end
  end
  return false
end

local own, others = {}, {}
for _, reported in ipairs(cjson.decode(ARGV[6])) do
  local slot = tostring(reported.id)
  local record = find(pod, slot)
  if not (record and record.closedUntil > now) then
    if record and record.owner == session and (reported.idle or next(record.leases) ~= nil) then
      own[#own + 1] = {
        slot = slot,
        rank = {
          flag(record.leases[turnId]),
          flag(next(record.leases) ~= nil),
          contentRank[record.content.kind],
          -record.used,
          reported.id,
        },
      }
    elseif reported.idle and not (record and inUse(record)) then
      others[#others + 1] = {
        slot = slot,
        rank = { flag(not (record and record.owner)), record and record.used or 0, reported.id },
      }
    end
  end
end
table.sort(own, isBefore)
table.sort(others, isBefore)
local chosen = own[1] or others[1]
if not chosen then return false end

local record = findOrAdd(pod, chosen.slot)
if record.owner ~= session then
  if record.owner then
    record.residues[#record.residues + 1] = record.owner
    record.content = { kind = 'unknown' }
  end
  local kept = {}
  for _, earlier in ipairs(record.residues) do
    if earlier ~= session then kept[#kept + 1] = earlier end
  end
  record.residues = kept
  record.owner = session
end
record.used = redis.call('HINCRBY', ledger, 'claims', 1)
record.leases[turnId] = now + leaseMs
if not record.loader and record.content.kind == 'unknown' then startLoad(record, turnId, loadMs) end

local role = 'check'
if record.loader then role = record.loader == turnId and 'load' or 'wait' end
local outcome = cjson.encode({
  slot = tonumber(chosen.slot),
  role = role,
  content = record.content,
  others = size(record.leases) - 1,
  revision = record.revision,
})
store(record)
return outcome
