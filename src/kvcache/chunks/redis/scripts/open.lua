-- Notes a turn whose engine may write chunks, or its lease anew.
-- KEYS: 1 open turns, 2 unsettled salts, 3 marks
-- ARGV: 1 salt, 2 turn, 3 lease ms
-- Returns: nothing
--- @include turns
redis.call('ZADD', open_turns, now + ARGV[3], member_of(ARGV[1], ARGV[2]))
