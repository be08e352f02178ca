#!lua
-- Begins a turn of the session that a client's name chooses, and creates it where there is none.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 lease ms, 7 ttl seconds, 8 sealed id, 9 model,
--       10 named sessions of the tenant at most, 11 marks of the prompt, oldest first, separated by blanks; of the tenant
--       at most, each '' without a limit: 12 turns at a time, 13 sessions, 14 bytes of stored KV;
--       15 and 16 session and tenant of the same name under another secret, or ''
-- Returns: 'active', 'created' or 'expired' with a snapshot, 'deleted', 'unknown', or 'limited' with the limit
--- @include arguments
--- @include kv-groups
--- @include quick-begin
--- @include prompts
--- @include tenant-turns
local marks = ARGV[11]

-- Whether the prompt continues that of branch 0, the session itself, further than that of another one.
local function continues_first(name)
  local _, branch = read_prompts(name, marks)
  if branch ~= 0 or not count_turn(ARGV[4], ARGV[5], ARGV[6], ARGV[12]) then
    return false
  end
  remember_prompt(name, 0, marks)
  return true
end
local quick = quick_begin(continues_first)
if quick then
  return quick
end
--- @include session
--- @include new-session
--- @include branches
--- @include tenant-room
local key, tenant, sealed_id = ARGV[3], ARGV[4], ARGV[8]
local lease_ends, most_named = now + ARGV[6], tonumber(ARGV[10])

local function count()
  count_turn(tenant, ARGV[5], ARGV[6], ARGV[12])
end

local function begin(session)
  count()
  session[LEASES] = take_lease(session[LEASES], ARGV[5], lease_ends)
  save(session)
  touch_kv(name_of(session.key))
  return reply('active', snapshot(session))
end

local function create(branch_key, ttl_seconds)
  count()
  return write_new({
    key = branch_key, tenant = tenant, turn = ARGV[5], lease_ms = ARGV[6], ttl_seconds = ttl_seconds,
    sealed_id = sealed_id, model = ARGV[9], pod = '', retry = '',
  })
end

-- A script holds up the turns of all sessions.
local most_looks = 16

local function make_room()
  local index = named_key(tenant)
  for _ = 1, most_looks do
    if redis.call('ZCARD', index) < most_named then
      return true
    end
    local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
    local session = load(oldest[1])
    -- Sliding: the deadline is as far away as the time to live when a turn has ended.
    local used = is_live(session) and session[ENDS] - session[TTL] * 1000
    if session and held_until(session) > now then
      redis.call('ZADD', index, now, oldest[1])
    elseif not used then
      redis.call('ZREM', index, oldest[1])
    elseif used > tonumber(oldest[2]) then
      redis.call('ZADD', index, used, oldest[1])
    else
      end_with_tombstone(session, expired)
    end
  end
  return redis.call('ZCARD', index) < most_named
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

local session = load(key)
if session and session[TENANT] ~= name_of(tenant) then
  return reply('unknown')
end
if not is_live(session) and ARGV[15] ~= '' then
  local earlier = load_owned(ARGV[15], ARGV[16])
  if is_live(earlier) then
    session, key, tenant, sealed_id = earlier, ARGV[15], ARGV[16], earlier[SEALED]
  end
end
if not has_turn_room(tenant, ARGV[5], ARGV[12]) then
  return reply('limited', 'turns')
end
if is_live(session) then
  local used, branch = read_prompts(name_of(key), marks)
  if not branch then
    branch = free_branch(key, used)
    session = load(key)
  end
  if not branch then
    return reply('unknown')
  end
  remember_prompt(name_of(key), branch, marks)
  if branch == 0 then
    return begin(session)
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
    return begin(other)
  end
  narrow_session_removal(branch_key)
  return reply('created', snapshot(create(branch_key, session[TTL])))
end

if session and session[STATE] == deleted and not is_removed(key) then
  return reply('deleted')
end
if not make_room() then
  return reply('unknown')
end
local limit = limit_of_session(tenant, ARGV[13], ARGV[14])
if limit then
  return reply('limited', limit)
end
redis.call('ZADD', named_key(tenant), now, name_of(key))
redis.call('DEL', branches_key(key))
remember_prompt(name_of(key), 0, marks)
if session and session[STATE] == expired then
  count()
  session[LEASES] = take_lease(session[LEASES], ARGV[5], lease_ends)
  save(session, 'PX', math.max(redis.call('PTTL', session_key(key)), tonumber(ARGV[6]), 1))
  return reply('expired', snapshot(session))
end
narrow_session_removal(key)
local created = create(key, ARGV[7])
redis.call('ZADD', tenant_key(tenant), created[CREATED], name_of(key))
return reply('created', snapshot(created))
