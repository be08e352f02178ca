#!lua flags=allow-oom
--- @include records
-- KEYS: pod. ARGV: slot, turn, content (JSON) or '', channel and message of the release. Returns 0 if the turn had none.
local record = find(KEYS[1], ARGV[1])
if record.turn ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' then
  record.owner, record.content = record.user, cjson.decode(ARGV[3])
end
record.turn, record.user, record.saving, record.task, record.long, record['until'] = nil, nil, nil, nil, nil, 0
store(KEYS[1], ARGV[1], record)
-- Users without the right to publish release slots all the same.
redis.pcall('PUBLISH', ARGV[4], ARGV[5])
return 1
