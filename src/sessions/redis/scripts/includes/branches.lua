-- Branches of a session that a client's name chooses: prompts that run under one name (prompts.lua). Branch 0 is the
-- session itself. The others are sessions that are in no list, under keys that differ from the session's in the first
-- character. Needs what session.lua declares.
local max_branches = 4

-- A snapshot with those of the branches beside the first.
local function whole_snapshot(session)
  local whole = snapshot(session)
  local fields = redis.call('HKEYS', branches_key(session.key))
  table.sort(fields)
  whole[4] = {}
  for _, branch in ipairs(fields) do
    if branch ~= '0' then
      local other = load_owned(branch_key_of(session.key, tonumber(branch)), session[TENANT])
      if is_live(other) then
        table.insert(whole[4], snapshot(other))
      end
    end
  end
  return whole
end
