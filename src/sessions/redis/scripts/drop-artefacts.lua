#!lua flags=allow-oom
-- Takes artefacts from whichever sessions have them, and queues their removal. A session in a turn keeps its own if an
-- eviction asks.
-- ARGV: 1 tombstone ms, 2 reason, 3 '1' for an eviction, 4… artefacts
-- Returns: 'done' with those that a session had
--- @include session
local dropped = {}
for i = 4, #ARGV do
  local session = read(name_of(ARGV[i]))
  session = session and session[ARTEFACT] == ARGV[i] and load(session.key) or nil
  if is_live(session) and (ARGV[3] ~= '1' or held_until(session) <= now) then
    queue_artefact(give_up_artefact(session), now)
    untrack_kv(name_of(session.key))
    session[KV_STATUS] = ARGV[2]
    save(session)
    dropped[#dropped + 1] = ARGV[i]
  end
end
return reply('done', dropped)
