-- Reading a session, and ending it. Needs ARGV[1] prefix and ARGV[2] how long a tombstone is kept, in milliseconds.
--   <prefix>s:<name>       string, see session-text.ts: a session, or its tombstone
--   <prefix>deadlines      sorted set: names of live sessions by the time the sweep has to look at them
--   <prefix>n:<tenant>     sorted set: names of a tenant's live sessions by the time of their creation
--   <prefix>r:<digest>     string: session key, line feed, digest of the body; which session a repeated create finds
-- Sessions and tenants go by names here, the first 22 characters of their keys: 132 bits tell them apart, and every index and record is
-- smaller for it. What is left of a session's key is in its text; a tenant's key every caller brings along.
--- @include arguments
--- @include removals
--- @include stored-kv
-- The digit is the version of the text's layout: a state of another one is unreadable.
local creating, active, expired, deleted = 'c1', 'a1', 'x1', 'd1'
local tombstone_ms = ARGV[2]
local deadlines = prefix .. 'deadlines'
local corrupted = 0

local function name_of(key)
  return string.sub(key, 1, 22)
end

local function session_key(key)
  return prefix .. 's:' .. name_of(key)
end

local function tenant_key(tenant)
  return prefix .. 'n:' .. name_of(tenant)
end

local function retry_key(digest)
  return prefix .. 'r:' .. digest
end

local text_pattern = '^([caxd]1)\n([^\n]*)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)'
  .. '\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$'

-- A session is its lines, which these name, and beside them its `key` and its `text`.
local STATE, REST, TENANT, CREATED, ENDS, TTL, TURNS, PROMPT, OUTPUT, CACHED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local SEALED, MODEL, POD, ARTEFACT, NOTE, RETRY, LEASES = 11, 12, 13, 14, 15, 16, 17

local function parse(text)
  local session = { string.match(text, text_pattern) }
  for line = CREATED, CACHED do
    if not session[line] or #session[line] > 15 then
      return nil
    end
  end
  return session
end

-- Writes a session's text. `options` are those of SET.
local function save(session, ...)
  session.text = table.concat(session, '\n')
  redis.call('SET', session_key(session.key), session.text, ...)
end

-- The leases with one taken for a turn, or taken again: the later end holds. Those that have run out go.
local function take_lease(leases, turn, ends)
  local kept = {}
  for other, until_ms in string.gmatch(leases, '(%S+)=(%d+)') do
    if other == turn then
      ends = math.max(ends, tonumber(until_ms))
    elseif tonumber(until_ms) > now then
      kept[#kept + 1] = other .. '=' .. until_ms
    end
  end
  kept[#kept + 1] = turn .. '=' .. string.format('%.0f', ends)
  return table.concat(kept, ' ')
end

local function release_lease(leases, turn)
  local kept = {}
  for other, until_ms in string.gmatch(leases, '(%S+)=(%d+)') do
    if other ~= turn then
      kept[#kept + 1] = other .. '=' .. until_ms
    end
  end
  return table.concat(kept, ' ')
end

local function holds_lease(session, turn)
  for other in string.gmatch(session[LEASES], '(%S+)=%d+') do
    if other == turn then
      return true
    end
  end
  return false
end

-- When the last lease ends; 0 without any.
local function held_until(session)
  local latest = 0
  for ends in string.gmatch(session[LEASES], '%S+=(%d+)') do
    latest = math.max(latest, tonumber(ends))
  end
  return latest
end

local function artefact_of(session)
  return session[ARTEFACT] ~= '' and session[ARTEFACT] or nil
end

local function leave_indexes(key, tenant)
  untrack_kv(name_of(key))
  redis.call('ZREM', deadlines, name_of(key))
  redis.call('ZREM', tenant_key(tenant), name_of(key))
end

-- An unreadable record goes. What can be made out of it is used as far as it fits the other keys: a whole key to name the removal by, the
-- tenant whose list it is in, and an artefact that is this session's own.
local function drop(key, text)
  corrupted = corrupted + 1
  redis.call('DEL', session_key(key))
  redis.call('ZREM', deadlines, name_of(key))
  untrack_kv(name_of(key))
  local lines = {}
  for line in string.gmatch(text .. '\n', '([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  if lines[3] then
    redis.pcall('ZREM', tenant_key(lines[3]), name_of(key))
  end
  if key == name_of(key) then
    key = key .. (lines[2] or '')
  end
  if string.find(key, '^[%w_-]+$') and #key == 43 then
    local value = lines[14] and read_artefact(lines[14])
    queue_session(key, value and string.match(value, '^[^\n]*') == key and lines[14] or nil)
  end
end

-- Reads a session by its key or its name.
local function read(key)
  local text = redis.pcall('GET', session_key(key))
  if not text then
    return nil
  end
  if text.err and not string.find(text.err, 'WRONGTYPE', 1, true) then
    error(text.err)
  end
  local session = type(text) == 'string' and parse(text)
  if not session then
    drop(key, type(text) == 'string' and text or '')
    return nil
  end
  session.key = name_of(key) .. session[REST]
  session.text = text
  if key ~= session.key and key ~= name_of(key) then
    return nil
  end
  return session
end

local function is_live(session)
  return session ~= nil and (session[STATE] == creating or session[STATE] == active)
end

-- A session whose first turn never completed leaves no tombstone, and lets its create be repeated.
local function vanish(session)
  redis.call('DEL', session_key(session.key))
  leave_indexes(session.key, session[TENANT])
  if session[RETRY] ~= '' then
    local remembered = redis.pcall('GET', retry_key(session[RETRY]))
    if type(remembered) == 'string' and string.match(remembered, '^[^\n]*') == session.key then
      redis.call('DEL', retry_key(session[RETRY]))
    end
  end
  queue_session(session.key, artefact_of(session))
end

-- Leaves a tombstone. An expired session keeps what it takes to start it anew.
local function entomb(session, state)
  local artefact = artefact_of(session)
  session[STATE] = state
  session[ENDS], session[TURNS], session[PROMPT], session[OUTPUT], session[CACHED] = 0, 0, 0, 0, 0
  session[POD], session[ARTEFACT], session[NOTE], session[RETRY], session[LEASES] = '', '', '', '', ''
  if state == deleted then
    session[TTL], session[SEALED], session[MODEL] = 0, '', ''
  end
  leave_indexes(session.key, session[TENANT])
  save(session, 'PX', tombstone_ms)
  queue_session(session.key, artefact)
end

-- Reads a session, and ends it first if its time is over: nobody sees one that the sweep has merely not reached yet.
local function load(key)
  local session = read(key)
  if not is_live(session) or held_until(session) > now then
    return session
  end
  if session[STATE] == creating then
    vanish(session)
    return nil
  end
  if now >= tonumber(session[ENDS]) then
    entomb(session, expired)
  end
  return session
end

local function load_owned(key, tenant)
  local session = load(key)
  return session and session[TENANT] == name_of(tenant) and session or nil
end

-- What a caller gets of a session: its text, and the value of its artefact.
local function snapshot(session)
  return { session.key, session.text, session[ARTEFACT] ~= '' and read_artefact(session[ARTEFACT]) or false }
end

-- Every script answers with how many unreadable records it came upon, the outcome, the time, and what belongs to the outcome.
local function reply(outcome, detail)
  return { corrupted, outcome, now, detail }
end
