-- A session's leases as they stand in its text. Needs `now`.
-- As in limits.ts.
local max_leases = 64

-- The leases with a turn's taken or renewed: the later end holds. Expired ones go, and of too many the first to end.
local function take_lease(leases, turn, ends)
  if leases == '' then
    return string.format('%s=%d', turn, ends)
  end
  local kept, earliest, earliest_at = {}, nil, nil
  for lease, other, until_ms in string.gmatch(leases, '((%S+)=(%d+))') do
    local other_ends = tonumber(until_ms)
    if other == turn then
      ends = math.max(ends, other_ends)
    elseif other_ends > now then
      kept[#kept + 1] = lease
      if not earliest or other_ends < earliest then
        earliest, earliest_at = other_ends, #kept
      end
    end
  end
  if #kept >= max_leases then
    table.remove(kept, earliest_at)
  end
  kept[#kept + 1] = string.format('%s=%d', turn, ends)
  return table.concat(kept, ' ')
end

-- The leases without a turn's, if it has one: else nil.
local function release_lease(leases, turn)
  local first, last = string.find(' ' .. leases, ' ' .. turn .. '=', 1, true)
  if not first then
    return nil
  end
  local rest = string.match(leases, '^%d+ ?(.*)$', last)
  return first == 1 and rest or rest == '' and string.sub(leases, 1, first - 2) or string.sub(leases, 1, first - 1) .. rest
end
