#!lua flags=allow-oom
-- Acknowledges removals. One requeued since the claim becomes due again; one of another claim is ignored.
-- ARGV: 1 unused, from 2 on removal ids, each with the name of its claim
-- Returns: 'done'
--- @include arguments
--- @include removals
for place = 2, #ARGV, 2 do
  local id = ARGV[place]
  local removal = read_removal(id)
  if removal.claims > 0 and removal.claim == ARGV[place + 1] then
    if removal.again then
      removal.again, removal.claims, removal.claim = false, 0, ''
      write_removal(id, removal)
      redis.call('ZADD', removals, now, id)
    elseif redis.call('ZREM', removals, id) == 1 then
      redis.call('HDEL', removal_infos, id)
      local artefact = string.match(id, '^a:(.*)$') or removal.artefact
      redis.call('HDEL', artefacts, artefact)
    end
  end
end
return { 0, 'done', now }
