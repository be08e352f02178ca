--- @include records
-- KEYS: pod. ARGV: session, turn, lease ms, artefact id or '', '1' if the turn may wait, '1' if it computes most of its
-- prompt, JSON list of {id, idle, task}
-- Returns JSON {slot, content}, 'wait', or nothing when there is no room.
local session, turn, artefactId = ARGV[1], ARGV[2], ARGV[4]
-- A turn waits for those of its session and for sweeps, which have no user; and always for a save.
local mayWait, isLong, isWorthWaiting = ARGV[5] == '1', ARGV[6] == '1', false
local records, lastUse = {}, 0
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local record = parse(stored[i + 1])
  records[stored[i]] = record
  lastUse = math.max(lastUse, record.used)
  if (record.user or session) == session and isHeld(record) then
    if record.saving then return 'wait' end
    isWorthWaiting = mayWait
  end
end

-- A turn of the session ran there, and its end is not reported.
local function hasRun(record, reported)
  return isHeld(record) and record.user == session and not record.saving and reported.idle and reported.task ~= record.task
end

local function rankOf(record)
  if record.owner ~= session then return record.owner and 3 or 2 end
  return artefactId ~= '' and record.content and record.content.artefactId == artefactId and 0 or 1
end

-- Of the slots of others a long turn takes the last one, also where a lower slot is empty: engines compute its prompt
-- before those of the slots above it. Of equal ranks other turns take the slot that was claimed least recently.
local function isBefore(a, b)
  if isLong and a.rank >= 2 and b.rank >= 2 then return a.slot > b.slot end
  if a.rank ~= b.rank then return a.rank < b.rank end
  if a.record.used ~= b.record.used then return a.record.used < b.record.used end
  return a.slot < b.slot
end

local best
local slots, longTurns = cjson.decode(ARGV[7]), 0
for _, reported in ipairs(slots) do
  local record = records[tostring(reported.id)] or parse()
  local isEnded = hasRun(record, reported)
  if isEnded and mayWait then return 'wait' end
  if isEnded or (reported.idle and not isHeld(record)) then
    local found = { slot = reported.id, task = reported.task, record = record, rank = isEnded and -1 or rankOf(record) }
    if not best or isBefore(found, best) then best = found end
  elseif not isHeld(record) or record.long then
    longTurns = longTurns + 1
  end
end
local isKept = isLong and #slots > 1 and longTurns + 1 >= #slots
if not best or isKept then return isWorthWaiting and 'wait' end

local owner = best.record.owner
local content = owner == session and best.record.content or nil
local claimed =
  { owner = owner, turn = turn, user = session, task = best.task, long = isLong, ['until'] = now + ARGV[3], used = lastUse + 1 }
store(KEYS[1], best.slot, claimed)
return cjson.encode({ slot = best.slot, content = content })
