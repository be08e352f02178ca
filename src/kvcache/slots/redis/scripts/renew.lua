#!lua flags=allow-oom
--- @include records
-- KEYS: the pod of each turn. ARGV: lease ms, '1' while saving, then slot and turn of each. Returns 1 or 0 for each.
local held = {}
for i, key in ipairs(KEYS) do
  local slot, turn = ARGV[2 * i + 1], ARGV[2 * i + 2]
  local record = find(key, slot)
  held[i] = record.turn == turn and 1 or 0
  if held[i] == 1 then
    record['until'] = now + ARGV[1]
    record.saving = record.saving or ARGV[2] == '1'
    store(key, slot, record)
  end
end
return held
