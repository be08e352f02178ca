-- The fast path of a begin: a live session of the tenant without another lease. It comes before the other includes, whose
-- functions each call would make anew: with them a turn costs Redis 34 µs instead of 19.
-- Needs what arguments.lua and kv-groups.lua declare, and ARGV: 3 session, 4 tenant, 5 turn id, 6 lease ms.

-- The reply, or nil: the other includes have to look. `may_begin`, where given, has the last word, by the session's name.
local function quick_begin(may_begin)
  local name = string.sub(ARGV[3], 1, 22)
  local key = prefix .. 's:' .. name
  local text = redis.pcall('GET', key)
  local head = 'a2\n' .. string.sub(ARGV[3], 23) .. '\n' .. string.sub(ARGV[4], 1, 22) .. '\n'
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
  redis.call('APPEND', key, string.format('%s=%d', ARGV[5], now + ARGV[6]))
  if artefact ~= '' then
    touch_kv(name)
  end
  local has_key = artefact ~= '' and record == ''
  local value = has_key and redis.pcall('GET', prefix .. 'a:' .. artefact)
  return { 0, 'active', now, { ARGV[3], text, type(value) == 'string' and string.match(value, '\n(.*)$') or false } }
end
