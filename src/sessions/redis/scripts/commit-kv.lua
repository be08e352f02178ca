#!lua flags=allow-oom
-- Makes an announced artefact the session's stored KV, unless a later turn's is there.
-- ARGV: 1 prefix, 2 tombstone ms, 3 session, 4 artefact, 5 payload, 6 tokens, 7 bytes, 8 turn,
--       9 grace ms of the artefact it replaces, 10 bytes that may be stored at most, or '' for no limit,
--       11 when the life of the session began that the artefact is of, 12 bytes of a tenant at most, or ''
-- Returns: 'committed', 'refused', or 'more' (call again to make room), with the number of artefacts evicted
--- @include session
--- @include kv-eviction
local session, artefact = load(ARGV[3]), ARGV[4]
local id = 'a:' .. artefact
local bytes, limit_bytes, tenant_bytes = tonumber(ARGV[7]), tonumber(ARGV[10]), tonumber(ARGV[12])
local evicted = 0
-- A script holds up the turns of all sessions, so each call makes only some of the room.
local most_at_once = 16

local record = ARGV[8] .. ' ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[5]
-- Every turn reads and writes the session's text.
local most_in_text = 512

local function write()
  write_artefact(artefact, ARGV[3], record)
end

-- The record goes into the text if it is small and the artefact's name tells whose it is; else it keeps its key.
local function store()
  local fits_text = #record <= most_in_text and name_of(artefact) == name_of(ARGV[3])
  session[ARTEFACT], session[RECORD] = artefact, fits_text and record or ''
  if fits_text then
    redis.call('DEL', artefact_key(artefact))
  else
    write()
  end
  save(session)
  untrack_kv(name_of(ARGV[3]))
  if limit_bytes or tenant_bytes then
    track_kv(name_of(ARGV[3]), bytes, tenant_bytes and session[TENANT] or '')
  end
  if tenant_bytes then
    redis.call('HDEL', kv_sizes, '!' .. session[TENANT])
  end
end

-- Whether the artefact fits into what the tenant may store, in place of what the session has stored.
local function fits_tenant()
  if not tenant_bytes then
    return true
  end
  local tenant = session[TENANT]
  local own, owner = counted_kv(name_of(ARGV[3]))
  local others = tenant_kv_bytes(tenant) - (owner == tenant and own or 0)
  if others + bytes <= tenant_bytes then
    return true
  end
  -- Of its own accord more than the limit says nothing of the room that is left.
  if bytes <= tenant_bytes then
    redis.call('HSET', kv_sizes, '!' .. tenant, ARGV[7])
  end
  return false
end

-- Whether the artefact fits in place of what the session has stored, after evictions: 'yes', 'no', or 'more' to go on.
local function make_room()
  local name = name_of(ARGV[3])
  local function fits()
    return stored_kv_bytes() - counted_kv(name) + bytes <= limit_bytes
  end
  if not limit_bytes or fits() then
    return 'yes'
  end
  if bytes > limit_bytes then
    return 'no'
  end
  local has_more
  evicted, has_more = evict_kv(limit_bytes - bytes, most_at_once, name)
  return fits() and 'yes' or has_more and 'more' or 'no'
end

-- Of an artefact whose own record was lost nothing is known, so any turn's may replace it.
local function turn_of(stored)
  local own_record = stored and session[RECORD] == '' and select(2, read_artefact(stored)) or session[RECORD]
  return tonumber(string.match(own_record, '^(%d+) ')) or 0
end

if is_live(session) then
  local stored = artefact_of(session)
  if stored == artefact then
    store()
    return reply('committed', evicted)
  end
  -- Once a removal was claimed the artefact may be gone already, and after it was acknowledged it is.
  local waits = redis.call('ZSCORE', removals, id) and redis.call('HEXISTS', removal_key(id), 'n') == 0
  if waits and session[CREATED] == ARGV[11] and tonumber(ARGV[8]) >= turn_of(stored) then
    local room = fits_tenant() and make_room() or 'tenant'
    if room == 'more' then
      return reply('more', evicted)
    end
    if room == 'yes' then
      redis.call('ZREM', removals, id)
      redis.call('DEL', removal_key(id))
      local replaced = give_up_artefact(session)
      session[KV_STATUS] = ''
      store()
      if replaced then
        queue_artefact(replaced, now + ARGV[9])
      end
      return reply('committed', evicted)
    end
    session[KV_STATUS] = room == 'tenant' and 'tenant_full' or 'store_full'
    save(session)
  end
end

-- The removal of the session may carry it already.
if redis.call('HGET', removal_key('s:' .. ARGV[3]), 'k') ~= artefact then
  queue_artefact(artefact, now)
  write()
end
return reply('refused', evicted)
