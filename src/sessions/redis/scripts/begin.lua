#!lua
-- Looks a session up for a turn and takes the turn's lease.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 turn id, 5 lease ms, 6 '1' if the tenant may have no further turn,
--       7 sessions of the tenant at most, or '', 8 how many it has in other partitions, '' if that is to be counted first
-- Returns: 'active' or 'expired' with a snapshot, 'deleted', 'unknown', 'limited' with the limit, or 'count'
--- @include arguments
--- @include stored-kv
--- @include quick-begin
local has_turn_room = ARGV[6] ~= '1'
local quick = has_turn_room and quick_begin()
if quick then
  return quick
end
--- @include session
--- @include tenant-room
local session = load_owned(ARGV[2], ARGV[3])
if not session then
  return reply('unknown')
end
if session[STATE] == deleted then
  return reply('deleted')
end
if session[STATE] == expired and ARGV[7] ~= '' and ARGV[8] == '' then
  return reply('count')
end
if session[STATE] == expired and has_all_sessions(ARGV[3], ARGV[7], ARGV[8]) then
  return reply('limited', 'sessions')
end
if not has_turn_room then
  return reply('limited', 'turns')
end

session[LEASES] = take_lease(session[LEASES], ARGV[4], now + ARGV[5])
if session[STATE] == expired then
  save_tombstone(session, math.max(tonumber(session[ENDS]), now + ARGV[5]))
  return reply('expired', snapshot(session))
end
save(session)
touch_kv(session[ARTEFACT])
return reply('active', snapshot(session))
