#!lua flags=allow-oom
-- Claims due removals; they become due again when the claim's lease ends.
-- ARGV: 1 prefix, 2 unused, 3 how many at most, 4 lease ms, 5 the claim's name
-- Returns: 'done' with { removal id, how often it was claimed, session, payload of its artefact or false } for each
--- @include arguments
--- @include removals
local claimed, unreadable = {}, 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', removals, '-inf', now, 'LIMIT', 0, ARGV[3])) do
  local info = removal_key(id)
  local own_artefact = string.match(id, '^a:(.*)$')
  local artefact = own_artefact or redis.call('HGET', info, 'k')
  local owner, record = nil, nil
  if artefact then
    owner, record = read_artefact(artefact)
  end
  if record or not own_artefact then
    redis.call('HDEL', info, 'g')
    redis.call('HSET', info, 't', ARGV[5])
    redis.call('ZADD', removals, now + ARGV[4], id)
    local session = string.match(id, '^s:(.*)$') or owner
    local payload = record and string.match(record, '^%d+ %d+ %d+ (.*)$') or false
    claimed[#claimed + 1] = { id, redis.call('HINCRBY', info, 'n', 1), session, payload }
  else
    -- Its payload was lost, so it cannot be removed by name. The next comparison with the store finds it as an orphan.
    unreadable = unreadable + 1
    redis.call('ZREM', removals, id)
    redis.call('DEL', info, artefact_key(own_artefact))
  end
end
return { unreadable, 'done', now, claimed }
