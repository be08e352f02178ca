-- Writing to the removal queue. Needs what arguments.lua declares.
--   q: by removal id `<how often it was claimed> <the last claim's name> <artefact that a session's removal carries>
--      <1 if it was queued again after a claim>`; empty ones are ''
--   a: by artefact its session's key, line feed, and its record as session-text.ts has it. There as long as the queue names
--      it, or a session whose text has no place for the record

-- The number of claims is 0 for a removal without any.
local function read_removal(id)
  local info = redis.pcall('HGET', removal_infos, id)
  local claims, claim, artefact, again = string.match(type(info) == 'string' and info or '', '^(%d+) (%S*) (%S*) (1?)$')
  return { claims = tonumber(claims) or 0, claim = claim or '', artefact = artefact or '', again = again == '1' }
end

local function write_removal(id, removal)
  local again = removal.again and '1' or ''
  redis.call('HSET', removal_infos, id, string.format('%d %s %s %s', removal.claims, removal.claim, removal.artefact, again))
end

local function write_artefact(artefact, session, record)
  redis.call('HSET', artefacts, artefact, session .. '\n' .. record)
end

-- The session and the record of an artefact that no text has; nil when it is missing or unreadable.
local function read_artefact(artefact)
  local value = redis.call('HGET', artefacts, artefact)
  return string.match(value or '', '^([^\n]*)\n(%d+ %d+ %d+ [^\n]*)$')
end

-- Whether the removal of a session carries an artefact: that of the one whose key stands by it, else of `session`.
local function is_carried(artefact, session)
  return read_removal('s:' .. (read_artefact(artefact) or session)).artefact == artefact
end

local function queue_artefact(artefact, due)
  redis.call('ZADD', removals, due, 'a:' .. artefact)
end

-- A claimed removal may have passed the pods already, so it becomes due again when it is acknowledged.
local function queue_session(session, artefact)
  local id = 's:' .. session
  local removal = read_removal(id)
  if artefact then
    if removal.artefact ~= '' and removal.artefact ~= artefact then
      queue_artefact(removal.artefact, now)
    end
    removal.artefact = artefact
  end
  if removal.claims > 0 then
    removal.again = true
  else
    redis.call('ZADD', removals, now, id)
  end
  if removal.claims > 0 or removal.artefact ~= '' then
    write_removal(id, removal)
  end
end

-- Keeps only the artefact of a session's removal: the session was revived, and its KV in pods is in use again.
local function narrow_session_removal(session)
  local id = 's:' .. session
  if redis.call('ZREM', removals, id) == 1 then
    local removal = read_removal(id)
    redis.call('HDEL', removal_infos, id)
    if removal.artefact ~= '' then
      queue_artefact(removal.artefact, now)
    end
  end
end
