#!lua
-- Looks a session up for a turn and takes the turn's lease.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 lease ms
-- Returns: 'active' or 'expired' with a snapshot, 'deleted', or 'unknown'
--- @include arguments
--- @include kv-groups
-- The fast path: a live session of the tenant without another lease. It comes before the other includes, whose
-- functions each call would make anew: with them a turn costs Redis 34 µs instead of 19.
do
  local name = string.sub(ARGV[3], 1, 22)
  local key = prefix .. 's:' .. name
  local text = redis.pcall('GET', key)
  local head = 'a2\n' .. string.sub(ARGV[3], 23) .. '\n' .. string.sub(ARGV[4], 1, 22) .. '\n'
  if type(text) == 'string' and string.sub(text, 1, #head) == head then
    local ends, artefact, record, leases_at = string.match(
      text,
      '^%d+\n(%d+)\n%d+\n%d+\n%d+\n%d+\n%d+\n[^\n]*\n[^\n]*\n[^\n]*\n([^\n]*)\n([^\n]*)\n[^\n]*\n[^\n]*\n()[^\n]*$',
      #head + 1
    )
    if ends and #ends <= 15 and tonumber(ends) > now and leases_at > #text then
      redis.call('APPEND', key, string.format('%s=%d', ARGV[5], now + ARGV[6]))
      if artefact ~= '' then
        touch_kv(name)
      end
      local has_key = artefact ~= '' and record == ''
      local value = has_key and redis.pcall('GET', prefix .. 'a:' .. artefact)
      return { 0, 'active', now, { ARGV[3], text, type(value) == 'string' and string.match(value, '\n(.*)$') or false } }
    end
  end
end
--- @include session
local session = load_owned(ARGV[3], ARGV[4])
if not session then
  return reply('unknown')
end
if session[STATE] == deleted then
  return reply('deleted')
end

session[LEASES] = take_lease(session[LEASES], ARGV[5], now + ARGV[6])
if session[STATE] == expired then
  local rest_ms = redis.call('PTTL', session_key(session.key))
  save(session, 'PX', math.max(rest_ms, tonumber(ARGV[6]), 1))
  return reply('expired', snapshot(session))
end
save(session)
touch_kv(name_of(session.key))
return reply('active', snapshot(session))
