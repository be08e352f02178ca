--- @include records
-- ARGV: pod, slot, turn, content as JSON or empty. Returns how many turns still hold the slot.
local record = find(ARGV[1], ARGV[2])
if not record then return 0 end
local isClosed = record.closedUntil > now
local isCloser = isClosed and record.closedBy == ARGV[3]
if record.leases[ARGV[3]] or record.loader == ARGV[3] or isCloser then
  letGo(record, ARGV[3])
  if ARGV[4] ~= '' and not record.loader and isCloser == isClosed then
    record.closedUntil = 0
    write(record, cjson.decode(ARGV[4]))
  end
  store(record)
end
return size(record.leases)
