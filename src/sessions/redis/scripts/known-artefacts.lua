#!lua flags=allow-oom
-- Tells which artefacts a session or the removal queue names, and forgets the payloads of the others.
-- ARGV: 1 prefix, 2 tombstone ms, 3… artefacts
-- Returns: 'done' with the known ones
--- @include session
local function is_named(artefact)
  if redis.call('ZSCORE', removals, 'a:' .. artefact) then
    return true
  end
  local owner = owner_of(artefact)
  local session = read(owner)
  return session and session[ARTEFACT] == artefact or redis.call('HGET', removal_key('s:' .. owner), 'k') == artefact
end

local known = {}
for i = 3, #ARGV do
  if is_named(ARGV[i]) then
    known[#known + 1] = ARGV[i]
  else
    redis.call('DEL', artefact_key(ARGV[i]))
  end
end
return reply('done', known)
