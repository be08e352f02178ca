#!lua flags=allow-oom
-- Makes an announced artefact the session's stored KV, unless a later turn's is there.
-- ARGV: 1 tombstone ms, 2 session, 3 artefact, 4 payload, 5 tokens, 6 bytes, 7 turn, 8 grace ms of the artefact it replaces,
--       9 when the life of the session began that the artefact is of; 10 bytes that may be stored at most, or '',
--       11 how many are stored in other partitions; 12 and 13 the same of the tenant;
--       14 '1' if no room can be made
-- Returns: 'committed', 'refused', 'tenant-full' for a refusal that less KV of the tenant would avoid, or 'no-room' with the
--          bytes that have to go, which leaves everything as it was but for the session's KV status
--- @include session
local session, artefact = load(ARGV[2]), ARGV[3]
local id, name = 'a:' .. artefact, name_of(ARGV[2])
local bytes, limit_bytes, tenant_bytes = tonumber(ARGV[6]), tonumber(ARGV[10]), tonumber(ARGV[12])
local record = ARGV[7] .. ' ' .. ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. ARGV[4]
-- Every turn reads and writes the session's text.
local most_in_text = 512

-- The record goes into the text if it is small.
local function store()
  session[ARTEFACT], session[RECORD] = artefact, #record <= most_in_text and record or ''
  if session[RECORD] ~= '' then
    redis.call('HDEL', artefacts, artefact)
  else
    write_artefact(artefact, ARGV[2], record)
  end
  save(session)
  if limit_bytes or tenant_bytes then
    track_kv(artefact, bytes, tenant_bytes and session[TENANT] or '')
  end
end

-- The bytes that go with what the session has stored: 0 if others hold it, too. And the tenant that they are counted for.
local function replaced_kv()
  local stored = artefact_of(session)
  if not stored or #other_holders(stored, name) > 0 then
    return 0, ''
  end
  return counted_kv(stored)
end

-- The bytes that have to go before the artefact fits in place of what the session has stored: at most 0 if it fits.
local function excess()
  return limit_bytes and stored_kv_bytes() + ARGV[11] - replaced_kv() + bytes - limit_bytes or 0
end

local function fits_tenant()
  if not tenant_bytes then
    return true
  end
  local own, owner = replaced_kv()
  local others = stored_kv_bytes(session[TENANT]) + ARGV[13] - (owner == session[TENANT] and own or 0)
  return others + bytes <= tenant_bytes
end

-- What was shared with the session comes before its own turns. Of an artefact whose own record was lost nothing is known, so
-- any turn's may replace it.
local function turn_of(stored)
  if stored and name_of(stored) ~= name then
    return 0
  end
  local own_record = stored and session[RECORD] == '' and select(2, read_artefact(stored)) or session[RECORD]
  return tonumber(string.match(own_record, '^(%d+) ')) or 0
end

local outcome = 'refused'
if is_live(session) then
  local stored = artefact_of(session)
  if stored == artefact then
    return reply('committed')
  end
  -- Once a removal was claimed the artefact may be gone already, and after it was acknowledged it is.
  local waits = redis.call('ZSCORE', removals, id) and read_removal(id).claims == 0
  if waits and session[CREATED] == ARGV[9] and tonumber(ARGV[7]) >= turn_of(stored) then
    if fits_tenant() and excess() <= 0 then
      redis.call('ZREM', removals, id)
      redis.call('HDEL', removal_infos, id)
      drop_artefact(session, now + ARGV[8])
      session[KV_STATUS] = ''
      store()
      return reply('committed')
    end
    session[KV_STATUS] = fits_tenant() and 'store_full' or 'tenant_full'
    save(session)
    if fits_tenant() and bytes <= limit_bytes and ARGV[14] ~= '1' then
      return reply('no-room', string.format('%.0f', excess()))
    end
    -- Of its own accord more than the limit says nothing of the room that is left.
    if not fits_tenant() and bytes <= tenant_bytes then
      outcome = 'tenant-full'
    end
  end
end

-- Other sessions may hold it, or the removal of the session carry it already.
if #holders_of(artefact) == 0 and not is_carried(artefact, ARGV[2]) then
  queue_artefact(artefact, now)
  write_artefact(artefact, ARGV[2], record)
end
return reply(outcome)
