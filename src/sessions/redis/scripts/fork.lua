#!lua
-- Makes an active session that shares the stored KV of another one of the tenant, or finds the one that an earlier attempt
-- made.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant, 4 the session that is forked, 5 ttl seconds, '' for that one's, 6 sealed id,
--       7 sessions of the tenant at most, or '', 8 how many it has in other partitions, '' if that is to be counted first,
--       9 '1' if the tenant's stored KV is too much for another session
-- Returns: 'forked' with a snapshot, 'unknown', 'limited' with the limit, or 'count'
--- @include session
--- @include share
--- @include tenant-room
local key, tenant = ARGV[2], ARGV[3]
local from = load_owned(ARGV[4], tenant)
if not is_live(from) then
  return reply('unknown')
end
local present = load(key)
if is_live(present) then
  return present[TENANT] == name_of(tenant) and reply('forked', snapshot(present)) or reply('unknown')
end
if ARGV[8] == '' then
  return reply('count')
end
local refusal = refusal_of_session(tenant, ARGV[7], ARGV[8], ARGV[9])
if refusal then
  return refusal
end

local ttl_seconds = ARGV[5] ~= '' and ARGV[5] or from[TTL]
local session = {
  active, string.sub(key, #name_of(key) + 1), name_of(tenant), string.format('%.0f', now),
  string.format('%.0f', now + ttl_seconds * 1000), ttl_seconds, from[TURNS], 0, 0, 0,
  ARGV[6], from[MODEL], from[POD], '', '', from[KV_STATUS], '', '',
  key = key,
}
share_artefact(from, session)
save(session)
redis.call('ZREM', forgets, 's' .. name_of(key))
redis.call('ZADD', deadlines, session[ENDS], name_of(key))
list_session(session)
return reply('forked', snapshot(session))
