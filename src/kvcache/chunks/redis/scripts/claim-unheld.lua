-- Claims those of the chunks for deletion that nobody holds.
-- KEYS: 1 held by the name, 2 holders by chunk, 3 claimed by the name, 4 claimers by chunk
-- ARGV: 1 JSON list of chunks
-- Returns: those chunks
--- @include chunks
local _, unheld = split(holders, distinct(cjson.decode(ARGV[1])))
add(claimed, claimers, unheld)
return unheld
