-- The fast path of a begin: a live session of the tenant without another lease. It comes before the other includes, whose
-- functions each call would make anew: with them a turn costs Redis 34 µs instead of 19.
-- Needs what arguments.lua and stored-kv.lua declare, and ARGV: 2 session, 3 tenant, 4 turn id, 5 lease ms.

-- The reply, or nil: the other includes have to look. `may_begin`, where given, has the last word, by the session's name.
local function quick_begin(may_begin)
  local name = string.sub(ARGV[2], 1, 22)
  local text = redis.pcall('HGET', sessions, name)
  local head = 'a3\n' .. string.sub(ARGV[2], 23) .. '\n' .. string.sub(ARGV[3], 1, 22) .. '\n'
  if type(text) ~= 'string' or string.sub(text, 1, #head) ~= head then
    return nil
  end
  local ends, artefact, record, leases_at = string.match(
    text,
    '^%d+\n(%d+)\n%d+\n%d+\n%d+\n%d+\n%d+\n[^\n]*\n[^\n]*\n[^\n]*\n([^\n]*)\n([^\n]*)\n[^\n]*\n[^\n]*\n()[^\n]*$',
    #head + 1
  )
  if not (ends and #ends <= 15 and tonumber(ends) > now and leases_at > #text) or (may_begin and not may_begin(name)) then
    return nil
  end
  redis.call('HSET', sessions, name, string.format('%s%s=%d', text, ARGV[4], now + ARGV[5]))
  if artefact ~= '' then
    touch_kv(artefact)
  end
  local has_own = artefact ~= '' and record == ''
  local value = has_own and redis.call('HGET', artefacts, artefact)
  return { 0, 'active', now, { ARGV[2], text, value and string.match(value, '\n(.*)$') or false } }
end
