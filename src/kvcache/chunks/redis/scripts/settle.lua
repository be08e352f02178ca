-- Ends a turn.
-- KEYS: 1 open turns, 2 unsettled salts, 3 marks
-- ARGV: 1 salt, 2 turn, 3 'tidy' or 'untidy'
-- Returns: nothing
--- @include turns
redis.call('ZREM', open_turns, member_of(ARGV[1], ARGV[2]))
if ARGV[3] == 'untidy' then
  unsettle(ARGV[1], now)
end
