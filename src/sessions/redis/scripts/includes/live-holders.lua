-- The sessions that hold an artefact and live. Needs what session.lua declares.
local function live_holders_of(artefact)
  for _, name in ipairs(holders_of(artefact)) do
    load(name)
  end
  -- Read once more: the end of one ends its branches.
  local holders = {}
  for _, name in ipairs(holders_of(artefact)) do
    local session = read(name)
    if is_live(session) then
      holders[#holders + 1] = session
    end
  end
  return holders
end

-- Whether one of them is in a turn, or has this name.
local function is_in_use(holders, name)
  for _, session in ipairs(holders) do
    if name_of(session.key) == name or held_until(session) > now then
      return true
    end
  end
  return false
end
