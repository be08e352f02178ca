--- @include records
-- ARGV: pod, slot, turn, revision, load ms. Returns 1 if the turn is the loader now.
local record = find(ARGV[1], ARGV[2])
if not record or record.revision ~= tonumber(ARGV[4]) or record.loader or not record.leases[ARGV[3]] then return 0 end
startLoad(record, ARGV[3], tonumber(ARGV[5]))
store(record)
return 1
