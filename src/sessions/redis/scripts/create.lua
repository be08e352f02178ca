#!lua
-- Writes a session in state creating, or finds the one that an earlier attempt of the same create wrote.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 turn id, 5 lease ms, 6 ttl seconds, 7 sealed id, 8 model,
--       9 pod or '', 10 digest of the idempotency key or '', 11 body digest, 12 remember ms,
--       13 'find-or-record', 'find-young-or-record' or 'record-only', 14 '1' if the tenant may have no further turn,
--       15 sessions of the tenant at most, or '', 16 how many it has in other partitions, '' if that is to be counted first,
--       17 '1' if the tenant's stored KV is too much for another session
-- Returns: 'created' or 'existing' with a snapshot, 'key-reused', 'limited' with the limit, or 'count'
--- @include session
--- @include new-session
--- @include tenant-room
local key, tenant, turn, lease_ms, ttl_seconds = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local digest, body_digest, remember_ms, use = ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local has_turn_room = ARGV[14] ~= '1'

local function join(session)
  if not has_turn_room then
    return reply('limited', 'turns')
  end
  session[LEASES] = take_lease(session[LEASES], turn, now + lease_ms)
  save(session)
  touch_kv(session[ARTEFACT])
  return reply('existing', snapshot(session))
end

-- The session and the body's digest of a retry that is remembered, or nil.
local function remembered_retry()
  local value = redis.call('HGET', retries, digest)
  local session_key, body, until_ms = string.match(value or '', '^([^\n]*)\n([^\n]*)\n(%d+)$')
  if until_ms and tonumber(until_ms) > now then
    return session_key, body
  end
end

-- What the idempotency key names: a live session, '' for several that were created alike, or nil.
local earlier = nil
if digest ~= '' then
  local earlier_body = nil
  earlier, earlier_body = remembered_retry()
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

if ARGV[16] == '' then
  return reply('count')
end
local refusal = refusal_of_session(tenant, ARGV[15], ARGV[16], ARGV[17])
if refusal then
  return refusal
end
if not has_turn_room then
  return reply('limited', 'turns')
end
local session = write_new({
  key = key, tenant = tenant, turn = turn, lease_ms = lease_ms, ttl_seconds = ttl_seconds,
  sealed_id = ARGV[7], model = ARGV[8], pod = ARGV[9], retry = digest,
})
list_session(session)
if digest ~= '' then
  local until_ms = string.format('%.0f', now + remember_ms)
  redis.call('HSET', retries, digest, (earlier and '' or key) .. '\n' .. body_digest .. '\n' .. until_ms)
  redis.call('ZADD', forgets, until_ms, 'r' .. digest)
end
return reply('created', snapshot(session))
