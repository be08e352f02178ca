--- @include records
-- ARGV: pod, slot, turn, content as JSON, close ms. Returns 1 if the turn was the loader.
local record = find(ARGV[1], ARGV[2])
if not record or record.loader ~= ARGV[3] then return 0 end
local content = cjson.decode(ARGV[4])
record.loader = nil
record.loaderUntil = nil
record.closedUntil = now + tonumber(ARGV[5])
record.closedBy = ARGV[3]
if content.kind ~= 'unknown' then record.residues = {} end
write(record, content)
store(record)
return 1
