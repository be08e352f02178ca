#!lua flags=allow-oom
-- Claims due removals; they become due again when the claim's lease ends.
-- ARGV: 1 unused, 2 the gateway, 3 how many at most, 4 lease ms, 5 the claim's name
-- Returns: 'done' with { removal id, how often it was claimed, session, payload of its artefact or false } for each,
--          or 'busy'
--- @include arguments
--- @include worker
if not may_work(ARGV[2]) then
  return { 0, 'busy', now, {} }
end
--- @include removals
local claimed, unreadable = {}, 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', removals, '-inf', now, 'LIMIT', 0, ARGV[3])) do
  local removal = read_removal(id)
  local own_artefact = string.match(id, '^a:(.*)$')
  local artefact = own_artefact or removal.artefact
  local owner, record = read_artefact(artefact)
  if record or not own_artefact then
    removal.claims, removal.claim, removal.again = removal.claims + 1, ARGV[5], false
    write_removal(id, removal)
    redis.call('ZADD', removals, now + ARGV[4], id)
    local session = string.match(id, '^s:(.*)$') or owner
    local payload = record and string.match(record, '^%d+ %d+ %d+ (.*)$') or false
    claimed[#claimed + 1] = { id, removal.claims, session, payload }
  else
    -- Its payload was lost, so it cannot be removed by name. The next comparison with the store finds it as an orphan.
    unreadable = unreadable + 1
    redis.call('ZREM', removals, id)
    redis.call('HDEL', removal_infos, id)
    redis.call('HDEL', artefacts, own_artefact)
  end
end
return { unreadable, 'done', now, claimed }
