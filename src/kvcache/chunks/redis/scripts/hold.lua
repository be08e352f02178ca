-- Gives an artefact chunks.
-- KEYS: 1 held by the name, 2 holders by chunk, 3 claimed by the name, 4 claimers by chunk
-- ARGV: 1 JSON list of chunks
-- Returns: 1, or 0 when some of them are being deleted
--- @include chunks
local chunks = distinct(cjson.decode(ARGV[1]))
if redis.call('EXISTS', claimed) == 1 or #split(claimers, chunks) > 0 then
  return 0
end
add(held, holders, chunks)
return 1
