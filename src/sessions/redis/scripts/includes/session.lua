-- Reading a session, and ending it. Needs ARGV[1] prefix and ARGV[2] how long a tombstone is kept, in milliseconds.
--   <prefix>s:<name>       string, see session-text.ts: a session, or its tombstone
--   <prefix>deadlines      sorted set: names of live sessions by the time of their next sweep, at most their deadline
--   <prefix>n:<tenant>     sorted set: names of a tenant's live sessions by the time of their creation
--   <prefix>i:<tenant>     sorted set: names of those that a client's name chooses, by a time of use that may be outdated
--   <prefix>b:<name>       hash, see prompts.lua: the prompts of such a session
--   <prefix>r:<digest>     string: session key, line feed, digest of the body: the session a repeated create finds.
--                          Without the session key several sessions were created alike, and it finds none
-- Sessions and tenants have names, the first 22 characters of their keys: 132 bits tell them apart, and indexes
-- and records are smaller. The rest of a session's key is in its text; each caller passes the whole key of a tenant.
--- @include arguments
--- @include leases
--- @include removals
--- @include stored-kv
-- The digit is the version of the text's layout: a state of another one is unreadable.
local creating, active, expired, deleted = 'c2', 'a2', 'x2', 'd2'
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

local function named_key(tenant)
  return prefix .. 'i:' .. name_of(tenant)
end

local function branches_key(key)
  return prefix .. 'b:' .. name_of(key)
end

local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

-- The key of a branch of a session that a client's name chooses (branches.lua).
local function branch_key_of(key, branch)
  local place = (string.find(alphabet, string.sub(key, 1, 1), 1, true) - 1 + branch) % #alphabet + 1
  return string.sub(alphabet, place, place) .. string.sub(key, 2)
end

local function retry_key(digest)
  return prefix .. 'r:' .. digest
end

local text_pattern = '^([caxd]2)\n([^\n]*)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)'
  .. '\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$'

-- A session is its lines, which these name, and beside them its `key` and its `text`.
local STATE, REST, TENANT, CREATED, ENDS, TTL, TURNS, PROMPT, OUTPUT, CACHED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local SEALED, MODEL, POD, ARTEFACT, RECORD, KV_STATUS, RETRY, LEASES = 11, 12, 13, 14, 15, 16, 17, 18

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

-- Takes a session's artefact from it, for the queue: from now on the record has a key of its own.
local function give_up_artefact(session)
  local artefact = artefact_of(session)
  if artefact and session[RECORD] ~= '' then
    write_artefact(artefact, session.key, session[RECORD])
  end
  session[ARTEFACT], session[RECORD] = '', ''
  return artefact
end

local function leave_indexes(key, tenant)
  untrack_kv(name_of(key))
  redis.call('ZREM', deadlines, name_of(key))
  redis.call('ZREM', tenant_key(tenant), name_of(key))
  redis.call('ZREM', named_key(tenant), name_of(key))
  redis.call('DEL', branches_key(key))
end

-- The artefact that an unreadable record names, if it is this session's own.
local function artefact_in(lines, key)
  local artefact, record = lines[14], lines[15]
  local owner = artefact and read_artefact(artefact)
  if owner then
    return owner == key and artefact or nil
  end
  if artefact and name_of(artefact) == name_of(key) and record and string.find(record, '^%d+ %d+ %d+ ') then
    write_artefact(artefact, key, record)
    return artefact
  end
  return nil
end

-- An unreadable record goes. What can be made out of it is used as far as it fits the other keys: a whole key to name
-- the removal by, the tenant whose list it is in, and an artefact that is this session's own.
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
    redis.pcall('ZREM', named_key(lines[3]), name_of(key))
  end
  redis.call('DEL', branches_key(key))
  if key == name_of(key) then
    key = key .. (lines[2] or '')
  end
  if string.find(key, '^[%w_-]+$') and #key == 43 then
    queue_session(key, artefact_in(lines, key))
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

-- A session that ends takes the branches beside the first along: nothing else names them.
local end_branches

-- A session whose first turn never completed leaves no tombstone, and lets its create be repeated.
local function discard(session)
  end_branches(session, expired)
  redis.call('DEL', session_key(session.key))
  leave_indexes(session.key, session[TENANT])
  if session[RETRY] ~= '' then
    local remembered = redis.pcall('GET', retry_key(session[RETRY]))
    if type(remembered) == 'string' and string.match(remembered, '^[^\n]*') == session.key then
      redis.call('DEL', retry_key(session[RETRY]))
    end
  end
  queue_session(session.key, give_up_artefact(session))
end

-- Leaves a tombstone. That of an expired session keeps what a turn needs to revive it, that of a deleted one the leases
-- of its turns: while they run, a client's name begins no new session.
local function end_with_tombstone(session, state)
  end_branches(session, state)
  local artefact = give_up_artefact(session)
  session[STATE] = state
  session[ENDS], session[TURNS], session[PROMPT], session[OUTPUT], session[CACHED] = 0, 0, 0, 0, 0
  session[POD], session[KV_STATUS], session[RETRY] = '', '', ''
  if state == deleted then
    session[TTL], session[SEALED], session[MODEL] = 0, '', ''
  else
    session[LEASES] = ''
  end
  leave_indexes(session.key, session[TENANT])
  save(session, 'PX', tombstone_ms)
  queue_session(session.key, artefact)
end

-- Reads a session, and ends it first if it has expired, so that no caller sees one that the sweep has not reached yet.
local function load(key)
  local session = read(key)
  if not is_live(session) or held_until(session) > now then
    return session
  end
  if session[STATE] == creating then
    discard(session)
    return nil
  end
  if now >= tonumber(session[ENDS]) then
    end_with_tombstone(session, expired)
  end
  return session
end

end_branches = function(session, state)
  for _, branch in ipairs(redis.call('HKEYS', branches_key(session.key))) do
    local other = branch ~= '0' and load(branch_key_of(session.key, tonumber(branch))) or nil
    if is_live(other) and other[TENANT] == session[TENANT] then
      if other[STATE] == creating and state ~= deleted then
        discard(other)
      else
        end_with_tombstone(other, state)
      end
    end
  end
end

local function load_owned(key, tenant)
  local session = load(key)
  return session and session[TENANT] == name_of(tenant) and session or nil
end

-- What a caller gets of a session: its text, and the record in its artefact's key where it has one.
local function snapshot(session)
  local record = nil
  if session[ARTEFACT] ~= '' and session[RECORD] == '' then
    record = select(2, read_artefact(session[ARTEFACT]))
  end
  return { session.key, session.text, record or false }
end

-- The session of an artefact that no other key tells of: its name is what the artefact's begins with.
local function owner_of(artefact)
  return read_artefact(artefact) or name_of(artefact)
end

-- Every script replies with the number of unreadable records dropped, the outcome, the time, and the outcome's detail.
local function reply(outcome, detail)
  return { corrupted, outcome, now, detail }
end
