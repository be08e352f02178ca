-- Counts a turn, releases its lease, and makes a creating or expired session active. What turns.lua leaves to it.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 pod, 7 prompt tokens, 8 output tokens, 9 cached tokens,
--       10 'keep', 'set' or 'slide', 11 ttl seconds, 12 the new deadline (11 and 12 for 'set')
-- Returns: 'completed' with a snapshot, or 'gone'
--- @include session
local largest_count = 999999999999999
local session = load(ARGV[3])
if session and session[TENANT] ~= name_of(ARGV[4]) then
  return reply('gone')
end
local still_held = session and release_lease(session[LEASES], ARGV[5])
if not is_live(session) and not (session and session[STATE] == expired and still_held) then
  -- The turn may have left KV in its pod after the session's removal had passed there.
  queue_session(ARGV[3])
  return reply('gone')
end
if not still_held then
  return reply('completed', snapshot(session))
end

local function add(count, more)
  return string.format('%.0f', math.min(count + more, largest_count))
end

write_even_when_full()
local revived = session[STATE] == expired
if revived then
  session[CREATED] = add(now, 0)
  redis.call('ZADD', tenant_key(ARGV[4]), now, name_of(session.key))
  narrow_session_removal(session.key)
end
if ARGV[10] == 'set' then
  session[TTL], session[ENDS] = ARGV[11], ARGV[12]
elseif ARGV[10] == 'slide' or revived then
  session[ENDS] = add(now, session[TTL] * 1000)
end
session[STATE] = active
session[TURNS] = add(session[TURNS], 1)
session[PROMPT] = add(session[PROMPT], ARGV[7])
session[OUTPUT] = add(session[OUTPUT], ARGV[8])
session[CACHED] = add(session[CACHED], ARGV[9])
session[POD] = ARGV[6]
session[RETRY] = ''
session[LEASES] = still_held
save(session)
redis.call('ZADD', deadlines, session[ENDS], name_of(session.key))
return reply('completed', snapshot(session))
