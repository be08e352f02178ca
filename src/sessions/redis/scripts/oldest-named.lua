#!lua flags=allow-oom
-- Finds the least recently used session of a tenant that a client's name chooses and that no turn holds.
-- ARGV: 1 tombstone ms, 2 tenant
-- Returns: 'found' with { session, when it was used last }, or 'none'
--- @include session
local tenant = name_of(ARGV[2])
-- A script holds up the turns of all sessions of its server.
local most_looks = 16

local function move(name, member, used_ms)
  local branches = read_branches(name)
  redis.call('ZREM', named, member)
  redis.call('ZADD', named, 0, member_of(tenant, used_ms, name))
  write_branches(name, branches, string.format('%013.0f', used_ms))
end

for _ = 1, most_looks do
  local member = redis.call('ZRANGEBYLEX', named, '[' .. tenant, '(' .. tenant .. '\255', 'LIMIT', 0, 1)[1]
  if not member then
    return reply('none')
  end
  local index_ms, name = string.match(member, '^(%d+)(.*)$', 23)
  local session = load(name)
  -- Sliding: the deadline is as far away as the time to live when a turn has ended.
  local used_ms = is_live(session) and session[ENDS] - session[TTL] * 1000
  if session and held_until(session) > now then
    move(name, member, now)
  elseif not used_ms then
    redis.call('ZREM', named, member)
  elseif used_ms > tonumber(index_ms) then
    move(name, member, used_ms)
  else
    return reply('found', { session.key, string.format('%.0f', used_ms) })
  end
end
return reply('none')
