-- Makes an announced artefact the session's stored KV, unless a later turn's is there.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 artefact, 5 payload, 6 tokens, 7 bytes, 8 turn, 9 grace ms of the artefact it replaces
-- Returns: 'committed' or 'refused'
--- @include session
local session, artefact = load(ARGV[3]), ARGV[4]
local id = 'a:' .. artefact

local function store()
  write_artefact(artefact, ARGV[3], ARGV[8], ARGV[6], ARGV[7], ARGV[5])
end

-- Of an artefact whose own record was lost nothing is known, so any turn's may replace it.
local function turn_of(stored)
  local value = stored and read_artefact(stored)
  return value and tonumber(string.match(value, '^[^\n]*\n(%d+)\n')) or 0
end

write_even_when_full()
if is_live(session) then
  local stored = artefact_of(session)
  if stored == artefact then
    store()
    return reply('committed')
  end
  -- Once a removal was claimed the artefact may be gone already, and after it was settled it is.
  local waits = redis.call('ZSCORE', removals, id) and redis.call('HEXISTS', removal_key(id), 'n') == 0
  if waits and tonumber(ARGV[8]) >= turn_of(stored) then
    redis.call('ZREM', removals, id)
    redis.call('DEL', removal_key(id))
    store()
    session[ARTEFACT], session[NOTE] = artefact, ''
    save(session)
    if stored then
      queue_artefact(stored, now + ARGV[9])
    end
    return reply('committed')
  end
end

-- The removal of the session may carry it already.
if redis.call('HGET', removal_key('s:' .. ARGV[3]), 'k') ~= artefact then
  queue_artefact(artefact, now)
  store()
end
return reply('refused')
