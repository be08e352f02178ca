#!lua flags=allow-oom
--- @include records
-- KEYS: pod. ARGV: slot, turn, lease ms, session or ''. Returns JSON {owner, content}, or nothing while the slot is held.
local record = find(KEYS[1], ARGV[1])
if isHeld(record) then return false end
local isOfTurn = ARGV[4] ~= ''
record.turn, record.user, record.saving, record['until'] = ARGV[2], isOfTurn and ARGV[4] or nil, isOfTurn or nil, now + ARGV[3]
record.task, record.long = nil, nil
store(KEYS[1], ARGV[1], record)
return cjson.encode({ owner = record.owner, content = record.content })
