-- Reading a session, and ending it. Needs ARGV[1] how long a tombstone is kept, in milliseconds.
-- Sessions and tenants have names, the first 22 characters of their keys: 132 bits tell them apart, and indexes
-- and records are smaller. The rest of a session's key is in its text; each caller passes the whole key of a tenant.
--- @include arguments
--- @include leases
--- @include removals
--- @include stored-kv
--- @include holders
--- @include prompts
-- The digit is the version of the text's layout: a state of another one is unreadable.
local creating, active, expired, deleted = 'c3', 'a3', 'x3', 'd3'
local tombstone_ms = ARGV[1]
local corrupted = 0

local function name_of(key)
  return string.sub(key, 1, 22)
end

local alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

-- The key of a branch of a session that a client's name chooses (branches.lua).
local function branch_key_of(key, branch)
  local place = (string.find(alphabet, string.sub(key, 1, 1), 1, true) - 1 + branch) % #alphabet + 1
  return string.sub(alphabet, place, place) .. string.sub(key, 2)
end

local text_pattern = '^([caxd]3)\n([^\n]*)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)'
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

local function save(session)
  session.text = table.concat(session, '\n')
  redis.call('HSET', sessions, name_of(session.key), session.text)
end

-- Writes a tombstone, which is kept until `ends`.
local function save_tombstone(session, ends)
  session[ENDS] = string.format('%.0f', ends)
  save(session)
  redis.call('ZADD', forgets, session[ENDS], 's' .. name_of(session.key))
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

-- Ends the hold of a session on an artefact, whose record its text has, or ''. Returns the artefact if the session had it
-- alone: from now on the record stands beside the queue. What was shared has a removal of its own, at `due`.
local function release_artefact(artefact, key, record, due)
  local others, owner = other_holders(artefact, name_of(key))
  if #others > 0 then
    write_holders(artefact, owner, others)
    return nil
  end
  untrack_kv(artefact)
  record = record ~= '' and record or select(2, read_artefact(artefact))
  if record then
    write_artefact(artefact, owner or key, record)
  end
  if not owner then
    return artefact
  end
  redis.call('HDEL', shares, artefact)
  queue_artefact(artefact, due)
end

-- Takes a session's artefact from it, for the queue.
local function give_up_artefact(session, due)
  local artefact, record = artefact_of(session), session[RECORD]
  session[ARTEFACT], session[RECORD] = '', ''
  return artefact and release_artefact(artefact, session.key, record, due or now)
end

-- The same of a session that lives on: the artefact is removed at `due`.
local function drop_artefact(session, due)
  local artefact = give_up_artefact(session, due)
  if artefact then
    queue_artefact(artefact, due)
  end
end

-- A session's member of the index `n`, or of `i`.
local function member_of(tenant, at_ms, name)
  return string.format('%s%013.0f%s', name_of(tenant), at_ms, name)
end

local function list_session(session)
  redis.call('ZADD', lists, 0, member_of(session[TENANT], session[CREATED], name_of(session.key)))
end

local function leave_named(tenant, name)
  local _, index_ms = read_branches(name)
  if index_ms then
    redis.call('ZREM', named, member_of(tenant, index_ms, name))
    redis.call('HDEL', prompts, name)
  end
end

local function leave_indexes(session)
  local name = name_of(session.key)
  redis.call('ZREM', deadlines, name)
  redis.call('ZREM', lists, member_of(session[TENANT], session[CREATED], name))
  leave_named(session[TENANT], name)
end

-- The artefact that an unreadable record names, if it is this session's own. What is shared with it is released.
local function artefact_in(lines, key)
  local artefact, record = lines[ARTEFACT] or '', lines[RECORD] or ''
  local holders = redis.call('HGET', shares, artefact)
  local owner = read_artefact(artefact)
  local is_own = owner == key or not owner and name_of(artefact) == name_of(key)
  if holders then
    is_own = string.find(holders .. ' ', ' ' .. name_of(key) .. ' ', 1, true)
  end
  if artefact == '' or not is_own or not (owner or string.find(record, '^%d+ %d+ %d+ ')) then
    return nil
  end
  return release_artefact(artefact, key, owner and '' or record, now)
end

-- An unreadable record goes. What can be made out of it is used as far as it fits the other keys: a whole key to name
-- the removal by, the list it is in, and an artefact that is this session's own.
local function drop(key, text)
  corrupted = corrupted + 1
  local name = name_of(key)
  redis.call('HDEL', sessions, name)
  redis.call('ZREM', deadlines, name)
  local lines = {}
  for line in string.gmatch(text .. '\n', '([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  if lines[CREATED] and string.find(lines[CREATED], '^%d+$') and #lines[CREATED] <= 15 then
    redis.call('ZREM', lists, member_of(lines[TENANT], lines[CREATED], name))
  end
  leave_named(lines[TENANT] or '', name)
  if key == name then
    key = key .. (lines[REST] or '')
  end
  if string.find(key, '^[%w_-]+$') and #key == 43 then
    queue_session(key, artefact_in(lines, key))
  end
end

local function is_live(session)
  return session ~= nil and (session[STATE] == creating or session[STATE] == active)
end

local function forget_tombstone(name)
  redis.call('HDEL', sessions, name)
  redis.call('ZREM', forgets, 's' .. name)
end

-- Reads a session by its key or its name.
local function read(key)
  local text = redis.call('HGET', sessions, name_of(key))
  if not text then
    return nil
  end
  local session = parse(text)
  if not session then
    drop(key, text)
    return nil
  end
  session.key = name_of(key) .. session[REST]
  session.text = text
  if key ~= session.key and key ~= name_of(key) then
    return nil
  end
  if not is_live(session) and tonumber(session[ENDS]) <= now then
    forget_tombstone(name_of(key))
    return nil
  end
  return session
end

-- A session that ends takes the branches beside the first along: nothing else names them.
local end_branches

-- A session whose first turn never completed leaves no tombstone, and lets its create be repeated.
local function discard(session)
  end_branches(session, expired)
  redis.call('HDEL', sessions, name_of(session.key))
  leave_indexes(session)
  if session[RETRY] ~= '' then
    local remembered = redis.call('HGET', retries, session[RETRY])
    if remembered and string.match(remembered, '^[^\n]*') == session.key then
      redis.call('HDEL', retries, session[RETRY])
      redis.call('ZREM', forgets, 'r' .. session[RETRY])
    end
  end
  queue_session(session.key, give_up_artefact(session))
end

-- Leaves a tombstone. That of an expired session keeps what a turn needs to revive it, that of a deleted one the leases
-- of its turns: while they run, a client's name begins no new session.
local function end_with_tombstone(session, state)
  end_branches(session, state)
  local artefact = give_up_artefact(session)
  leave_indexes(session)
  session[STATE] = state
  session[TURNS], session[PROMPT], session[OUTPUT], session[CACHED] = 0, 0, 0, 0
  session[POD], session[KV_STATUS], session[RETRY] = '', '', ''
  if state == deleted then
    session[TTL], session[SEALED], session[MODEL] = 0, '', ''
  else
    session[LEASES] = ''
  end
  save_tombstone(session, now + tombstone_ms)
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
  for branch in pairs((read_branches(name_of(session.key)))) do
    local other = branch ~= 0 and load(branch_key_of(session.key, branch)) or nil
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

-- What a caller gets of a session: its text, and the record of its artefact where the text has none.
local function snapshot(session)
  local record = nil
  if session[ARTEFACT] ~= '' and session[RECORD] == '' then
    record = select(2, read_artefact(session[ARTEFACT]))
  end
  return { session.key, session.text, record or false }
end

-- Every script replies with the number of unreadable records dropped, the outcome, the time, and the outcome's detail.
local function reply(outcome, detail)
  return { corrupted, outcome, now, detail }
end
