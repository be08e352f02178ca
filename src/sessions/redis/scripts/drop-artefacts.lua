#!lua flags=allow-oom
-- Takes artefacts of no use from whichever sessions have them, and queues their removal.
-- ARGV: 1 prefix, 2 tombstone ms, 3 reason, 4… artefacts
-- Returns: 'done' with how many a session had
--- @include session
--- @include kv-eviction
local dropped = 0
for i = 4, #ARGV do
  local session = read(owner_of(ARGV[i]))
  if session and session[ARTEFACT] == ARGV[i] then
    session = load(session.key)
    if is_live(session) then
      drop_artefact(session, ARGV[3])
      dropped = dropped + 1
    end
  end
end
return reply('done', dropped)
