--- @include records
-- KEYS: pod. ARGV: session, turn, lease ms, artefact id or '', '1' if the turn may wait, JSON list of {id, idle, task}
-- Returns JSON {slot, content}, 'wait', or nothing when there is no room.
local session, turn, artefactId = ARGV[1], ARGV[2], ARGV[4]
-- A turn waits for those of its session and for sweeps, which have no user; and always for a save.
local mayWait, isShort = ARGV[5] == '1', false
local records, lastUse = {}, 0
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local record = parse(stored[i + 1])
  records[stored[i]] = record
  lastUse = math.max(lastUse, record.used)
  if (record.user or session) == session and isHeld(record) then
    if record.saving then return 'wait' end
    isShort = mayWait
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

local best
for _, reported in ipairs(cjson.decode(ARGV[6])) do
  local record = records[tostring(reported.id)] or parse()
  local isEnded = hasRun(record, reported)
  if isEnded and mayWait then return 'wait' end
  if isEnded or (reported.idle and not isHeld(record)) then
    local found = { slot = reported.id, task = reported.task, record = record, rank = isEnded and -1 or rankOf(record) }
    local isBetter = not best or found.rank < best.rank
      or (found.rank == best.rank and (record.used < best.record.used
        or (record.used == best.record.used and found.slot < best.slot)))
    if isBetter then best = found end
  end
end
if not best then return isShort and 'wait' end

local owner = best.record.owner
local content = owner == session and best.record.content or nil
local claimed = { owner = owner, turn = turn, user = session, task = best.task, ['until'] = now + ARGV[3], used = lastUse + 1 }
store(KEYS[1], best.slot, claimed)
return cjson.encode({ slot = best.slot, content = content })
