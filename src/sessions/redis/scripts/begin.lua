#!lua
-- Looks a session up for a turn and takes the turn's lease.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 lease ms; of the tenant at most, each '' without a
--       limit: 7 turns at a time, 8 sessions
-- Returns: 'active' or 'expired' with a snapshot, 'deleted', 'unknown', or 'limited' with the limit
--- @include arguments
--- @include kv-groups
--- @include quick-begin
--- @include tenant-turns
local function may_begin()
  return count_turn(ARGV[4], ARGV[5], ARGV[6], ARGV[7])
end
local quick = quick_begin(may_begin)
if quick then
  return quick
end
--- @include session
--- @include tenant-room
local session = load_owned(ARGV[3], ARGV[4])
if not session then
  return reply('unknown')
end
if session[STATE] == deleted then
  return reply('deleted')
end
local limit = session[STATE] == expired and limit_of_session(ARGV[4], ARGV[8], '') or nil
if not limit and not may_begin() then
  limit = 'turns'
end
if limit then
  return reply('limited', limit)
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
