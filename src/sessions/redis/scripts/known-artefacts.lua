#!lua flags=allow-oom
-- Tells which artefacts a session or the removal queue names, and forgets the payloads of the others.
-- ARGV: 1 tombstone ms, 2… artefacts
-- Returns: 'done' with the known ones
--- @include session
local function is_named(artefact)
  if redis.call('ZSCORE', removals, 'a:' .. artefact) then
    return true
  end
  if #holders_of(artefact) > 0 then
    return true
  end
  local session = read(name_of(artefact))
  return is_carried(artefact, session and session.key or '')
end

local known = {}
for i = 2, #ARGV do
  if is_named(ARGV[i]) then
    known[#known + 1] = ARGV[i]
  else
    redis.call('HDEL', artefacts, ARGV[i])
    redis.call('HDEL', shares, ARGV[i])
  end
end
return reply('done', known)
