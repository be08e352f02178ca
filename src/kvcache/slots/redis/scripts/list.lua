--- @include records
-- KEYS: pod. ARGV: ms for late ends of turns. Returns a list of JSON {slot, owner, content, inUse, user}.
local entries = {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local record = parse(stored[i + 1])
  local entry = { slot = tonumber(stored[i]), owner = record.owner, content = record.content, user = record.user }
  entry.inUse = isHeld(record, record.user and ARGV[1])
  entries[#entries + 1] = cjson.encode(entry)
end
return entries
