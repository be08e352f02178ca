--- @include records
-- ARGV: pod, slot, turn, session, lease ms. Returns held, superseded or lost.
local record = find(ARGV[1], ARGV[2])
if not record or record.owner ~= ARGV[4] or not record.leases[ARGV[3]] then return 'lost' end
local outcome = 'held'
if size(record.leases) > 1 then
  letGo(record, ARGV[3])
  outcome = 'superseded'
else
  record.leases[ARGV[3]] = now + tonumber(ARGV[5])
end
store(record)
return outcome
