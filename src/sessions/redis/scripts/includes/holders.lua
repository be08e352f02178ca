-- Which sessions hold an artefact: nearly always the one that stored it, whose name its id begins with. Needs what
-- arguments.lua declares.
--   f: by artefact the key of the session that stored it, and the names of all that hold it, separated by blanks. There from
--      its first fork to its removal
-- A fork of more starts without KV: whoever gives an artefact up looks at all that hold it. As in limits.ts.
local max_holders = 64

-- Their names, and the key of the session that stored it if it was ever shared. A session holds what its text names,
-- whatever `f` has: texts may be lost.
local function holders_of(artefact)
  local shared = redis.call('HGET', shares, artefact)
  local owner, names = string.match(shared or '', '^(%S+)(.*)$')
  local holders = {}
  for name in string.gmatch(names or string.sub(artefact, 1, 22), '%S+') do
    local text = redis.pcall('HGET', sessions, name)
    if type(text) == 'string' and string.find(text, '\n' .. artefact .. '\n', 1, true) then
      holders[#holders + 1] = name
    end
  end
  return holders, owner
end

local function write_holders(artefact, owner, holders)
  redis.call('HSET', shares, artefact, owner .. ' ' .. table.concat(holders, ' '))
end

-- The sessions beside one that hold an artefact, and the key as above.
local function other_holders(artefact, name)
  local others = {}
  if not redis.call('HGET', shares, artefact) then
    return others
  end
  local holders, owner = holders_of(artefact)
  for _, holder in ipairs(holders) do
    if holder ~= name then
      others[#others + 1] = holder
    end
  end
  return others, owner
end
