--- @include records
-- ARGV: pod, slot, turn, session or empty, lease ms. Returns seized, in-use or nothing-to-do.
local session = ARGV[4]
local record = find(ARGV[1], ARGV[2])
if session ~= '' and not (record and tracesOf(record)[session]) then return 'nothing-to-do' end
if record and inUse(record) then return 'in-use' end
if session == '' and record and not needsWipe(record) then return 'nothing-to-do' end
record = record or findOrAdd(ARGV[1], ARGV[2])
record.leases[ARGV[3]] = now + tonumber(ARGV[5])
startLoad(record, ARGV[3], tonumber(ARGV[5]))
store(record)
return 'seized'
