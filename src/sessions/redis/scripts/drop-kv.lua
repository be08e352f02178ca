-- Takes an artefact that cannot be loaded any more from its session, and queues its removal.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 artefact, 5 reason
-- Returns: 'done'
--- @include session
local session = load(ARGV[3])
if is_live(session) and session[ARTEFACT] == ARGV[4] then
  queue_artefact(session[ARTEFACT], now)
  session[ARTEFACT], session[NOTE] = '', ARGV[5]
  save(session)
end
return reply('done')
