--- @include records
-- ARGV: pod, slot, session.
local record = findOrAdd(ARGV[1], ARGV[2])
if not tracesOf(record)[ARGV[3]] then record.residues[#record.residues + 1] = ARGV[3] end
store(record)
return 1
