--- @include records
-- ARGV: pod, slot, turn. Returns 1 if the turn had seized the slot.
local record = find(ARGV[1], ARGV[2])
if not record or record.loader ~= ARGV[3] then return 0 end
record.loader = nil
record.loaderUntil = nil
record.leases[ARGV[3]] = nil
if next(record.leases) == nil then record.owner = nil end
record.residues = {}
write(record, { kind = 'clean' })
store(record)
return 1
