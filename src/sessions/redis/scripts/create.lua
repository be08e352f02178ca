#!lua
-- Writes a session in state creating, or finds the one that an earlier attempt of the same create wrote.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 tenant, 5 turn id, 6 lease ms, 7 ttl seconds, 8 sealed id, 9 model,
--       10 pod or '', 11 digest of the idempotency key or '', 12 body digest, 13 remember ms,
--       14 'find-or-record', 'find-young-or-record' or 'record-only'; of the tenant at most, each '' without a limit:
--       15 sessions, 16 bytes of stored KV, 17 turns at a time
-- Returns: 'created' or 'existing' with a snapshot, 'key-reused', or 'limited' with the limit
--- @include session
--- @include new-session
--- @include tenant-turns
--- @include tenant-room
local key, tenant, turn, lease_ms, ttl_seconds = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local digest, body_digest, remember_ms, use = ARGV[11], ARGV[12], ARGV[13], ARGV[14]

local function join(session)
  if not count_turn(tenant, turn, lease_ms, ARGV[17]) then
    return reply('limited', 'turns')
  end
  session[LEASES] = take_lease(session[LEASES], turn, now + lease_ms)
  save(session)
  touch_kv(name_of(session.key))
  return reply('existing', snapshot(session))
end

-- What the idempotency key names: a live session, '' for several that were created alike, or nil.
local earlier = nil
if digest ~= '' then
  local remembered = redis.pcall('GET', retry_key(digest))
  local earlier_body = nil
  if type(remembered) == 'string' then
    earlier, earlier_body = string.match(remembered, '^([^\n]*)\n(.*)$')
  end
  if earlier and use ~= 'record-only' and earlier_body ~= body_digest then
    return reply('key-reused')
  end
  if earlier ~= '' then
    local session = earlier and load_owned(earlier, tenant)
    local is_young = session and tonumber(session[TURNS]) <= 1
    earlier = is_live(session) and session.key ~= key and (is_young or use == 'find-or-record') and session.key or nil
    if earlier and use ~= 'record-only' then
      return join(session)
    end
  end
end

local present = load(key)
if is_live(present) then
  return present[TENANT] == name_of(tenant) and join(present) or reply('key-reused')
end

local limit = limit_of_session(tenant, ARGV[15], ARGV[16])
if not limit and not count_turn(tenant, turn, lease_ms, ARGV[17]) then
  limit = 'turns'
end
if limit then
  return reply('limited', limit)
end
local session = write_new({
  key = key, tenant = tenant, turn = turn, lease_ms = lease_ms, ttl_seconds = ttl_seconds,
  sealed_id = ARGV[8], model = ARGV[9], pod = ARGV[10], retry = digest,
})
redis.call('ZADD', tenant_key(tenant), session[CREATED], name_of(key))
if digest ~= '' then
  redis.call('SET', retry_key(digest), (earlier and '' or key) .. '\n' .. body_digest, 'PX', remember_ms)
end
return reply('created', snapshot(session))
