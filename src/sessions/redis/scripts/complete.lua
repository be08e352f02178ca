#!lua flags=allow-oom
-- Counts a turn, releases its lease, and makes a creating or expired session active.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 pod, 7 prompt tokens, 8 output tokens,
--       9 cached tokens, 10 'keep', 'set' or 'slide', 11 ttl seconds, 12 the new deadline (11 and 12 for 'set'),
--       13 '' if turns of a tenant have no limit
-- Returns: 'completed' with a snapshot, 'repeated' likewise if it counted nothing, or 'gone'
--- @include arguments
--- @include tenant-turns
uncount_turn(ARGV[4], ARGV[5], ARGV[13])
-- The fast path, as in begin.lua: a live session of the tenant that only this turn holds.
do
  local name = string.sub(ARGV[3], 1, 22)
  local key = prefix .. 's:' .. name
  local text = redis.pcall('GET', key)
  local head = 'a2\n' .. string.sub(ARGV[3], 23) .. '\n' .. string.sub(ARGV[4], 1, 22) .. '\n'
  if type(text) == 'string' and string.sub(text, 1, #head) == head then
    local created, was, ttl, turns, prompt, output, cached, texts, artefact, record, rest, leases = string.match(
      text,
      '^(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*\n[^\n]*\n)[^\n]*\n([^\n]*)\n([^\n]*)\n([^\n]*\n[^\n]*\n)([^\n]*)$',
      #head + 1
    )
    local is_held_by_this = leases
      and string.sub(leases, 1, #ARGV[5] + 1) == ARGV[5] .. '='
      and not string.find(leases, ' ', 1, true)
    if is_held_by_this and #was <= 15 and tonumber(was) > now then
      local ends = was
      if ARGV[10] == 'set' then
        ttl, ends = ARGV[11], ARGV[12]
      elseif ARGV[10] == 'slide' then
        ends = string.format('%d', now + ttl * 1000)
      end
      prompt, output, cached = prompt + ARGV[7], output + ARGV[8], cached + ARGV[9]
      -- Larger sums are cut off below.
      if math.max(prompt, output, cached) < 1e14 then
        local changed = string.format(
          '%s%s\n%s\n%s\n%d\n%d\n%d\n%d\n%s%s\n%s\n%s\n%s',
          head, created, ends, ttl, turns + 1, prompt, output, cached, texts, ARGV[6], artefact, record, rest
        )
        redis.call('SET', key, changed)
        -- The index has no deadline later than it is. Where it is earlier, the sweep looks at the session and moves it.
        if tonumber(ends) < tonumber(was) then
          redis.call('ZADD', prefix .. 'deadlines', ends, name)
        end
        local has_key = artefact ~= '' and record == ''
        local value = has_key and redis.pcall('GET', prefix .. 'a:' .. artefact)
        return { 0, 'completed', now, { ARGV[3], changed, type(value) == 'string' and string.match(value, '\n(.*)$') or false } }
      end
    end
  end
end
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
  if still_held then
    session[LEASES] = still_held
    save(session, 'KEEPTTL')
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
