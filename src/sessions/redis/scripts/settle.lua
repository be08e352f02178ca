-- Strikes a removal off, unless it was queued again since it was claimed.
-- KEYS: none
-- ARGV: 1 prefix, 2 unused, 3 removal id
-- Returns: 'done'
--- @include arguments
--- @include removals
local id = ARGV[3]
local info = removal_key(id)
if redis.call('HDEL', info, 'g') == 1 then
  redis.call('HDEL', info, 'n')
  redis.call('ZADD', removals, now, id)
elseif redis.call('ZREM', removals, id) == 1 then
  local artefact = string.match(id, '^a:(.*)$') or redis.call('HGET', info, 'k')
  redis.call('DEL', info)
  if artefact then
    redis.call('DEL', artefact_key(artefact))
  end
end
return { 0, 'done', now }
