#!lua flags=allow-oom
--- @include records
-- KEYS: pod. ARGV: lease ms, '1' while saving, then slot and turn of each. Returns 1 or 0 for each.
local held = {}
for i = 3, #ARGV, 2 do
  local slot, turn = ARGV[i], ARGV[i + 1]
  local record = find(KEYS[1], slot)
  local isHolder = record.turn == turn
  if isHolder then
    record['until'] = now + ARGV[1]
    record.saving = record.saving or ARGV[2] == '1'
    store(KEYS[1], slot, record)
  end
  held[#held + 1] = isHolder and 1 or 0
end
return held
