--- @include records
-- ARGV: pod.
local prefix = 'p|' .. ARGV[1] .. '|'
local fields = redis.call('HKEYS', ledger)
for _, field in ipairs(fields) do
  if string.sub(field, 1, #prefix) == prefix then
    local name = string.sub(field, 3)
    local record = parse(redis.call('HGET', ledger, field), name)
    if record then
      for session in pairs(record.tracedBefore) do storeList(session, unlist(session, name)) end
    end
    redis.call('HDEL', ledger, field)
  end
end
return 1
