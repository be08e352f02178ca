#!lua flags=allow-oom
--- @include records
-- KEYS: pod. ARGV: slot, turn, lease ms. Returns JSON {owner, content}, or nothing while the slot is held.
local record = find(KEYS[1], ARGV[1])
if isHeld(record) then return false end
record.turn, record.user, record.saving, record.task, record['until'] = ARGV[2], nil, nil, nil, now + ARGV[3]
store(KEYS[1], ARGV[1], record)
return cjson.encode({ owner = record.owner, content = record.content })
