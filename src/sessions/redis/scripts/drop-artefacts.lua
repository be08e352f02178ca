#!lua flags=allow-oom
-- Takes artefacts from whichever sessions have them, and queues their removal. What a session in a turn has stays if an
-- eviction asks.
-- ARGV: 1 tombstone ms, 2 reason, 3 '1' for an eviction, 4… artefacts
-- Returns: 'done' with those that a session had
--- @include session
--- @include live-holders
local dropped = {}
for i = 4, #ARGV do
  local holders = live_holders_of(ARGV[i])
  if #holders > 0 and not (ARGV[3] == '1' and is_in_use(holders)) then
    for _, session in ipairs(holders) do
      drop_artefact(session, now)
      session[KV_STATUS] = ARGV[2]
      save(session)
    end
    dropped[#dropped + 1] = ARGV[i]
  end
end
return reply('done', dropped)
