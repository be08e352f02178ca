#!lua flags=allow-oom
-- Takes an artefact that cannot be loaded any more from its session, and queues its removal.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 artefact, 5 reason
-- Returns: 'done'
--- @include session
--- @include kv-eviction
local session = load(ARGV[3])
if is_live(session) and session[ARTEFACT] == ARGV[4] then
  drop_artefact(session, ARGV[5])
end
return reply('done')
