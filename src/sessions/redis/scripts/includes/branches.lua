-- Branches of a session that a client's name chooses: prompts that run under one name (prompts.lua). Branch 0 is the
-- session itself. The others are sessions that are in no list, under keys that differ from the session's in the first
-- character. Needs what session.lua declares.
local max_branches = 4

-- A snapshot with those of the branches beside the first.
local function whole_snapshot(session)
  local whole, branches = snapshot(session), read_branches(name_of(session.key))
  whole[4] = {}
  for branch = 1, max_branches - 1 do
    local other = branches[branch] and load_owned(branch_key_of(session.key, branch), session[TENANT])
    if is_live(other or nil) then
      table.insert(whole[4], snapshot(other))
    end
  end
  return whole
end
