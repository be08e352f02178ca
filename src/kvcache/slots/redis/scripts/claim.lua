--- @include records
-- KEYS: pod. ARGV: session, turn, lease ms, artefact id or '', '1' if the turn may wait, JSON list of idle slots
-- Returns JSON {slot, content}, 'wait', or nothing when there is no room.
local session, turn, artefactId = ARGV[1], ARGV[2], ARGV[4]
-- A turn waits for those of its session, and for sweeps, which have no user.
local mayWait, isShort = ARGV[5] == '1', false
local records, lastUse = {}, 0
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local record = parse(stored[i + 1])
  records[stored[i]] = record
  lastUse = math.max(lastUse, record.used)
  if mayWait and (record.user or session) == session and isHeld(record) then
    if record.saving then return 'wait' end
    isShort = true
  end
end

local function rankOf(record)
  if record.owner ~= session then return record.owner and 3 or 2 end
  return artefactId ~= '' and record.content and record.content.artefactId == artefactId and 0 or 1
end

local best
for _, slot in ipairs(cjson.decode(ARGV[6])) do
  local record = records[tostring(slot)] or parse()
  if not isHeld(record) then
    local found = { slot = slot, record = record, rank = rankOf(record) }
    local isBetter = not best or found.rank < best.rank
      or (found.rank == best.rank and (record.used < best.record.used
        or (record.used == best.record.used and found.slot < best.slot)))
    if isBetter then best = found end
  end
end
if not best then return isShort and 'wait' end

local owner = best.record.owner
local content = owner == session and best.record.content or nil
store(KEYS[1], best.slot, { owner = owner, turn = turn, user = session, ['until'] = now + ARGV[3], used = lastUse + 1 })
return cjson.encode({ slot = best.slot, content = content })
