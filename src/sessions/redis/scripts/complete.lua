#!lua flags=allow-oom
-- Counts a turn, releases its lease, and makes a creating or expired session active.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 turn id, 5 pod, 6 prompt tokens, 7 output tokens,
--       8 cached tokens, 9 'keep', 'set' or 'slide', 10 ttl seconds, 11 the new deadline (10 and 11 for 'set')
-- Returns: 'completed' with a snapshot, 'repeated' likewise if it counted nothing, or 'gone'
--- @include arguments
-- The fast path, as in begin.lua: a live session of the tenant that only this turn holds.
do
  local name = string.sub(ARGV[2], 1, 22)
  local text = redis.pcall('HGET', sessions, name)
  local head = 'a3\n' .. string.sub(ARGV[2], 23) .. '\n' .. string.sub(ARGV[3], 1, 22) .. '\n'
  if type(text) == 'string' and string.sub(text, 1, #head) == head then
    local created, was, ttl, turns, prompt, output, cached, texts, artefact, record, rest, leases = string.match(
      text,
      '^(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*\n[^\n]*\n)[^\n]*\n([^\n]*)\n([^\n]*)\n([^\n]*\n[^\n]*\n)([^\n]*)$',
      #head + 1
    )
    local is_held_by_this = leases
      and string.sub(leases, 1, #ARGV[4] + 1) == ARGV[4] .. '='
      and not string.find(leases, ' ', 1, true)
    if is_held_by_this and #was <= 15 and tonumber(was) > now then
      local ends = was
      if ARGV[9] == 'set' then
        ttl, ends = ARGV[10], ARGV[11]
      elseif ARGV[9] == 'slide' then
        ends = string.format('%d', now + ttl * 1000)
      end
      prompt, output, cached = prompt + ARGV[6], output + ARGV[7], cached + ARGV[8]
      -- Larger sums are cut off below.
      if math.max(prompt, output, cached) < 1e14 then
        local changed = string.format(
          '%s%s\n%s\n%s\n%d\n%d\n%d\n%d\n%s%s\n%s\n%s\n%s',
          head, created, ends, ttl, turns + 1, prompt, output, cached, texts, ARGV[5], artefact, record, rest
        )
        redis.call('HSET', sessions, name, changed)
        -- The index has no deadline later than it is. Where it is earlier, the sweep looks at the session and moves it.
        if tonumber(ends) < tonumber(was) then
          redis.call('ZADD', deadlines, ends, name)
        end
        local has_own = artefact ~= '' and record == ''
        local value = has_own and redis.call('HGET', artefacts, artefact)
        return { 0, 'completed', now, { ARGV[2], changed, value and string.match(value, '\n(.*)$') or false } }
      end
    end
  end
end
--- @include session
local largest_count = 999999999999999
local session = load(ARGV[2])
if session and session[TENANT] ~= name_of(ARGV[3]) then
  return reply('gone')
end
local still_held = session and release_lease(session[LEASES], ARGV[4])
if not is_live(session) and not (session and session[STATE] == expired and still_held) then
  -- The turn may have left KV in its pod after the session's removal had passed there.
  queue_session(ARGV[2])
  if still_held then
    session[LEASES] = still_held
    save(session)
  end
  return reply('gone')
end
if not still_held then
  return reply('repeated', snapshot(session))
end

local function add(count, more)
  return string.format('%.0f', math.min(count + more, largest_count))
end

local revived = session[STATE] == expired
if revived then
  session[CREATED] = add(now, 0)
  list_session(session)
  redis.call('ZREM', forgets, 's' .. name_of(session.key))
  narrow_session_removal(session.key)
end
if ARGV[9] == 'set' then
  session[TTL], session[ENDS] = ARGV[10], ARGV[11]
elseif ARGV[9] == 'slide' or revived then
  session[ENDS] = add(now, session[TTL] * 1000)
end
session[STATE] = active
session[TURNS] = add(session[TURNS], 1)
session[PROMPT] = add(session[PROMPT], ARGV[6])
session[OUTPUT] = add(session[OUTPUT], ARGV[7])
session[CACHED] = add(session[CACHED], ARGV[8])
session[POD] = ARGV[5]
session[RETRY] = ''
session[LEASES] = still_held
save(session)
redis.call('ZADD', deadlines, session[ENDS], name_of(session.key))
return reply('completed', snapshot(session))
