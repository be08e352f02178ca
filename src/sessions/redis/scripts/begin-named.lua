#!lua
-- Begins a turn of the session that a client's name chooses, and creates it where there is none.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 turn id, 5 lease ms, 6 ttl seconds, 7 sealed id, '' for the session's own, 8 model,
--       9 marks of the prompt, oldest first, separated by blanks, 10 '1' if the tenant may have no further turn,
--       11 '1' if a session that does not live is neither created nor revived,
--       12 named sessions of the tenant at most, 13 how many it has in other partitions, '' if that is to be counted first,
--       14 and 15 the same of all its sessions, at most '' for any number,
--       16 '1' if its stored KV is too much for another session,
--       17 '1' if a new prompt starts from the stored KV of the prompt before
-- Returns: 'active', 'created' or 'expired' with a snapshot, 'deleted', 'unknown', 'limited' with the limit, 'absent' for a
--          session that does not live, 'count', or 'named-full' where another named session has to end first
--- @include arguments
--- @include stored-kv
--- @include prompts
--- @include quick-begin
local marks, has_turn_room = ARGV[9], ARGV[10] ~= '1'

-- Whether the prompt continues that of branch 0, the session itself, further than that of another one.
local function continues_first(name)
  local branches, index_ms = read_branches(name)
  if continued_branch(branches, marks) ~= 0 then
    return false
  end
  remember_prompt(name, branches, index_ms, 0, marks)
  return true
end
local quick = has_turn_room and quick_begin(continues_first)
if quick then
  return quick
end
--- @include session
--- @include new-session
--- @include branches
--- @include share
--- @include tenant-room
local key, tenant = ARGV[2], ARGV[3]
local name, lease_ends = name_of(key), now + ARGV[5]

local function begin(session, source)
  if source then
    share_artefact(source, session)
  end
  session[LEASES] = take_lease(session[LEASES], ARGV[4], lease_ends)
  save(session)
  touch_kv(session[ARTEFACT])
  return reply('active', snapshot(session))
end

local function create(branch_key, ttl_seconds, sealed_id)
  return write_new({
    key = branch_key, tenant = tenant, turn = ARGV[4], lease_ms = ARGV[5], ttl_seconds = ttl_seconds,
    sealed_id = sealed_id, model = ARGV[8], pod = '', retry = '',
  })
end

local function unused_branch(branches)
  for branch = 0, max_branches - 1 do
    if not branches[branch] then
      return branch
    end
  end
end

-- The branch that was used longest ago and that no turn holds.
local function oldest_branch(branches)
  local oldest = nil
  for branch = 0, max_branches - 1 do
    local session = load(branch_key_of(key, branch))
    local is_older = not oldest or branches[branch].used < branches[oldest].used
    if is_older and (not session or held_until(session) <= now) then
      oldest = branch
    end
  end
  return oldest
end

-- Makes room for another prompt. Nil: there is none.
local function free_branch(branches)
  local free = unused_branch(branches) or oldest_branch(branches)
  local session = nil
  if free then
    session = load(branch_key_of(key, free))
  end
  if is_live(session) then
    drop_artefact(session, now)
    session[KV_STATUS] = ''
    save(session)
  end
  return free
end

-- The session of the most recently used branch that has stored KV, if a new one starts from that.
local function forked_branch(branches)
  local latest, found = 0, nil
  for branch = 0, ARGV[17] == '1' and max_branches - 1 or -1 do
    local session = branches[branch] and branches[branch].used > latest and load(branch_key_of(key, branch))
    if session and is_live(session) and session[TENANT] == name_of(tenant) and session[ARTEFACT] ~= '' then
      latest, found = branches[branch].used, session
    end
  end
  return found
end

-- Makes the session one of those that a client's name chooses, used now. Returns its time in the index.
local function index_named()
  leave_named(tenant, name)
  redis.call('ZADD', named, 0, member_of(tenant, now, name))
  return string.format('%013.0f', now)
end

-- Whether nothing is left of a deleted session: no turn, no KV.
local function is_removed()
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

local session = load(key)
if session and session[TENANT] ~= name_of(tenant) then
  return reply('unknown')
end
if not is_live(session) and ARGV[11] == '1' then
  return reply('absent')
end
if not has_turn_room then
  return reply('limited', 'turns')
end
if is_live(session) then
  local branches, index_ms = read_branches(name)
  local branch, source = continued_branch(branches, marks), nil
  if not branch then
    branch = free_branch(branches)
    source = branch and forked_branch(branches)
    session = load(key)
  end
  if not branch then
    return reply('unknown')
  end
  remember_prompt(name, branches, index_ms or index_named(), branch, marks)
  if branch == 0 then
    return begin(session, source)
  end
  session[ENDS] = string.format('%.0f', math.max(session[ENDS], now + session[TTL] * 1000))
  save(session)
  local branch_key = branch_key_of(key, branch)
  local other = load(branch_key)
  if is_live(other) and other[TENANT] ~= name_of(tenant) then
    return reply('unknown')
  end
  if is_live(other) then
    other[TTL] = session[TTL]
    return begin(other, source)
  end
  narrow_session_removal(branch_key)
  local created = create(branch_key, session[TTL], ARGV[7] ~= '' and ARGV[7] or session[SEALED])
  if source then
    share_artefact(source, created)
    save(created)
  end
  return reply('created', snapshot(created))
end

if session and session[STATE] == deleted and not is_removed() then
  return reply('deleted')
end
if ARGV[13] == '' then
  return reply('count')
end
if count_of(named, tenant) + ARGV[13] >= tonumber(ARGV[12]) then
  return reply('named-full')
end
local refusal = refusal_of_session(tenant, ARGV[14], ARGV[15], ARGV[16])
if refusal then
  return refusal
end
remember_prompt(name, {}, index_named(), 0, marks)
if session and session[STATE] == expired then
  session[LEASES] = take_lease(session[LEASES], ARGV[4], lease_ends)
  save_tombstone(session, math.max(tonumber(session[ENDS]), lease_ends))
  return reply('expired', snapshot(session))
end
narrow_session_removal(key)
local created = create(key, ARGV[6], ARGV[7])
list_session(created)
return reply('created', snapshot(created))
