--- @include records
-- KEYS: pod. Returns a list of JSON {slot, owner, content, inUse, user}.
local entries = {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local record = parse(stored[i + 1])
  local entry = { slot = tonumber(stored[i]), owner = record.owner, content = record.content, user = record.user }
  entry.inUse = isHeld(record)
  entries[#entries + 1] = cjson.encode(entry)
end
return entries
