#!lua flags=allow-oom
-- Tells which artefacts a session or the removal queue names, and forgets the payloads of the others.
-- ARGV: 1 tombstone ms, 2… artefacts
-- Returns: 'done' with the known ones
--- @include session
local function is_named(artefact)
  if redis.call('ZSCORE', removals, 'a:' .. artefact) then
    return true
  end
  local session = read(name_of(artefact))
  if session and session[ARTEFACT] == artefact then
    return true
  end
  local owner = session and session.key or read_artefact(artefact)
  return owner and read_removal('s:' .. owner).artefact == artefact
end

local known = {}
for i = 2, #ARGV do
  if is_named(ARGV[i]) then
    known[#known + 1] = ARGV[i]
  else
    redis.call('HDEL', artefacts, ARGV[i])
  end
end
return reply('done', known)
