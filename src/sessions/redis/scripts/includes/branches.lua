-- Branches of a session that a client's name chooses: prompts that run under one name.
--   <prefix>b:<name>       hash: by a branch's number when it was last begun, a blank, and the last mark of its prompt
-- Branch 0 is the session itself. The others are sessions that are in no list, under keys that differ from the session's
-- in the first character. Needs what session.lua declares.
local max_branches = 4
local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

local function branch_key_of(key, branch)
  local place = (string.find(alphabet, string.sub(key, 1, 1), 1, true) - 1 + branch) % #alphabet + 1
  return string.sub(alphabet, place, place) .. string.sub(key, 2)
end

local function remember_branch(key, branch, mark)
  redis.call('HSET', branches_key(key), branch, string.format('%.0f %s', now, mark))
end

-- The number and the prompt's time of use of each branch, and the one whose prompt the marks continue, the longest first.
local function read_branches(key, marks)
  local places = {}
  for place, mark in ipairs(marks) do
    places[mark] = place
  end
  local used, found, longest = {}, nil, 0
  local fields = redis.call('HGETALL', branches_key(key))
  for at = 1, #fields, 2 do
    local branch = tonumber(fields[at])
    local used_ms, mark = string.match(fields[at + 1], '^(%d+) (.*)$')
    used[branch] = tonumber(used_ms)
    if (places[mark] or 0) > longest then
      found, longest = branch, places[mark]
    end
  end
  return used, found
end

local function unused_branch(used)
  for branch = 0, max_branches - 1 do
    if not used[branch] then
      return branch
    end
  end
end

-- The branch that was used longest ago and that no turn holds.
local function oldest_branch(key, used)
  local oldest = nil
  for branch = 0, max_branches - 1 do
    local session = load(branch_key_of(key, branch))
    if (not oldest or used[branch] < used[oldest]) and (not session or held_until(session) <= now) then
      oldest = branch
    end
  end
  return oldest
end

-- Makes room for another prompt. Nil: there is none.
local function free_branch(key, used)
  local free = unused_branch(used) or oldest_branch(key, used)
  local session = nil
  if free then
    session = load(branch_key_of(key, free))
  end
  if is_live(session) then
    if session[ARTEFACT] ~= '' then
      queue_artefact(give_up_artefact(session), now)
      untrack_kv(name_of(session.key))
    end
    session[KV_STATUS] = ''
    save(session)
  end
  return free
end

-- Ends the branches beside the first as their session is deleted.
local function delete_branches(key)
  for branch = 1, max_branches - 1 do
    if redis.call('HEXISTS', branches_key(key), branch) == 1 then
      local session = load(branch_key_of(key, branch))
      if is_live(session) then
        end_with_tombstone(session, deleted)
      end
    end
  end
end

-- Whether nothing is left of a deleted session: no turn, no KV.
local function is_removed(key)
  for branch = 0, max_branches - 1 do
    local branch_key = branch_key_of(key, branch)
    local session = load(branch_key)
    local is_held = session and session[STATE] == deleted and held_until(session) > now
    if is_held or redis.call('ZSCORE', removals, 's:' .. branch_key) then
      return false
    end
  end
  return true
end

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
