#!lua flags=allow-oom
-- Compares a part of what is counted as stored KV of tenants with the sessions, and sets it right. Sessions may have stored
-- KV before tenants had a limit, and counts may be lost.
-- ARGV: 1 tombstone ms, 2 'sessions' or 'counts': which are gone through, 3 cursor, 4 how many, about
-- Returns: 'done' with the next cursor: '0' at the end
--- @include session
local function bytes_of(session)
  local own_record = session[RECORD] == '' and select(2, read_artefact(session[ARTEFACT])) or session[RECORD]
  return tonumber(string.match(own_record or '', '^%d+ %d+ (%d+) ')) or 0
end

local function recount_session(name)
  local session = read(name)
  if not is_live(session) or session[ARTEFACT] == '' then
    return
  end
  local bytes, counted, tenant = bytes_of(session), counted_kv(session[ARTEFACT])
  if bytes ~= counted or (bytes > 0 and tenant ~= session[TENANT]) then
    track_kv(session[ARTEFACT], bytes, session[TENANT])
  end
end

local function recount(field)
  if ARGV[2] == 'sessions' then
    recount_session(field)
  elseif not is_sum(field) and #holders_of(field) == 0 then
    untrack_kv(field)
  end
end

local command = ARGV[2] == 'sessions' and { 'ZSCAN', deadlines } or { 'HSCAN', kv }
local scanned = redis.call(command[1], command[2], ARGV[3], 'COUNT', ARGV[4])
for at = 1, #scanned[2], 2 do
  recount(scanned[2][at])
end
return reply('done', scanned[1])
