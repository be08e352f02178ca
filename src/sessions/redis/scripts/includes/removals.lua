-- Writing to the removal queue.
--   <prefix>removals          sorted set: removal id (`a:<artefact>` or `s:<session>`) by the time it is due
--   <prefix>q:<removal id>    hash: n how often it was claimed, t the last claim's name, k the artefact a session's
--                             removal carries, g it was queued again after a claim
--   <prefix>a:<artefact>      string: session key, line feed, the artefact's record as session-text.ts has it. There as
--                             long as the queue names it, or a session whose text has no place for the record
-- Needs `prefix` and `now`.
local removals = prefix .. 'removals'

local function removal_key(id)
  return prefix .. 'q:' .. id
end

local function artefact_key(artefact)
  return prefix .. 'a:' .. artefact
end

local function write_artefact(artefact, session, record)
  redis.call('SET', artefact_key(artefact), session .. '\n' .. record)
end

-- The session and the record in an artefact's key; nil when the key is missing or unreadable.
local function read_artefact(artefact)
  local value = redis.pcall('GET', artefact_key(artefact))
  return string.match(type(value) == 'string' and value or '', '^([^\n]*)\n(%d+ %d+ %d+ [^\n]*)$')
end

local function queue_artefact(artefact, due)
  redis.call('ZADD', removals, due, 'a:' .. artefact)
end

-- A claimed removal may have passed the pods already, so it becomes due again when it is acknowledged.
local function queue_session(session, artefact)
  local id = 's:' .. session
  local info = removal_key(id)
  if artefact then
    local carried = redis.call('HGET', info, 'k')
    if carried and carried ~= artefact then
      queue_artefact(carried, now)
    end
    redis.call('HSET', info, 'k', artefact)
  end
  if redis.call('HEXISTS', info, 'n') == 1 then
    redis.call('HSET', info, 'g', 1)
  else
    redis.call('ZADD', removals, now, id)
  end
end

-- Keeps only the artefact of a session's removal: the session was revived, and its KV in pods is in use again.
local function narrow_session_removal(session)
  local id = 's:' .. session
  if redis.call('ZREM', removals, id) == 1 then
    local artefact = redis.call('HGET', removal_key(id), 'k')
    redis.call('DEL', removal_key(id))
    if artefact then
      queue_artefact(artefact, now)
    end
  end
end
