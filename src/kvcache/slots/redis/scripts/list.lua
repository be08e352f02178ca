--- @include records
-- Returns for every slot: <pod>|<slot>, 1 if it is in use, 1 if it needs a wipe, its content's kind, and the content's mark or ''.
local entries = {}
local fields = redis.call('HGETALL', ledger)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'p|' then
    local name = string.sub(fields[i], 3)
    local record = parse(fields[i + 1], name)
    if record then
      entries[#entries + 1] = { name, inUse(record) and 1 or 0, needsWipe(record) and 1 or 0, record.content.kind, record.content.mark or '' }
    end
  end
end
return entries
