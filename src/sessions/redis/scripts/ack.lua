#!lua flags=allow-oom
-- Acknowledges removals. One requeued since the claim becomes due again; one of another claim is ignored.
-- ARGV: 1 prefix, 2 unused, from 3 on removal ids, each with the name of its claim
-- Returns: 'done'
--- @include arguments
--- @include removals
for place = 3, #ARGV, 2 do
  local id = ARGV[place]
  local info = removal_key(id)
  local is_callers = redis.call('HGET', info, 't') == ARGV[place + 1]
  if is_callers and redis.call('HDEL', info, 'g') == 1 then
    redis.call('HDEL', info, 'n', 't')
    redis.call('ZADD', removals, now, id)
  elseif is_callers and redis.call('ZREM', removals, id) == 1 then
    local artefact = string.match(id, '^a:(.*)$') or redis.call('HGET', info, 'k')
    redis.call('DEL', info)
    if artefact then
      redis.call('DEL', artefact_key(artefact))
    end
  end
end
return { 0, 'done', now }
