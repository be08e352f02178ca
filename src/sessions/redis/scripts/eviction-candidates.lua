#!lua flags=allow-oom
-- The stored KV that should go first: of a sample, that with the greatest product of time since its last use and bytes.
-- KV of a session in a turn stays, and so does that of one session that the caller names.
-- ARGV: 1 tombstone ms, 2 how many at most, 3 name of the session whose KV stays, or ''
-- Returns: 'done' with { bytes stored, { artefact, bytes, score } of each candidate }
--- @include session
--- @include live-holders
-- A script holds up the turns of all sessions of its server.
local most_sampled = 64

local sampled
if redis.call('HLEN', kv) <= most_sampled then
  sampled = redis.call('HGETALL', kv)
else
  sampled = redis.call('HRANDFIELD', kv, most_sampled, 'WITHVALUES')
end
local found = {}
for at = 1, #sampled, 2 do
  local bytes, _, used_ms = read_kv(sampled[at + 1])
  if not is_sum(sampled[at]) then
    -- Below 0 when the clock was set back.
    found[#found + 1] = { artefact = sampled[at], bytes = bytes, score = (now - used_ms) * bytes }
  end
end
table.sort(found, function(a, b)
  return a.score > b.score
end)
local candidates = {}
for _, candidate in ipairs(found) do
  local holders = live_holders_of(candidate.artefact)
  if #holders == 0 then
    untrack_kv(candidate.artefact)
  elseif not is_in_use(holders, ARGV[3]) then
    local bytes, score = string.format('%.0f', candidate.bytes), string.format('%.0f', candidate.score)
    candidates[#candidates + 1] = { candidate.artefact, bytes, score }
    if #candidates == tonumber(ARGV[2]) then
      break
    end
  end
end
return reply('done', { string.format('%.0f', stored_kv_bytes()), candidates })
