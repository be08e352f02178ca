-- Prompts that run under a client's name, by the branch of the session that each has.
--   <prefix>b:<name>       hash: by a branch's number when it was last begun, a blank, and the last mark of its prompt
-- Needs `prefix` and `now`.
local function prompts_key(name)
  return prefix .. 'b:' .. name
end

local function remember_prompt(name, branch, marks)
  redis.call('HSET', prompts_key(name), branch, string.format('%.0f %s', now, string.match(marks, '%S+$')))
end

-- The time of use of each branch by its number, and the one whose prompt the marks continue, the longest first. `marks`
-- are separated by blanks.
local function read_prompts(name, marks)
  local all, used, found, longest = ' ' .. marks .. ' ', {}, nil, 0
  local fields = redis.call('HGETALL', prompts_key(name))
  for at = 1, #fields, 2 do
    local branch = tonumber(fields[at])
    local used_ms, mark = string.match(fields[at + 1], '^(%d+)( .*)$')
    used[branch] = tonumber(used_ms)
    local place = mark and string.find(all, mark .. ' ', 1, true) or 0
    if place > longest then
      found, longest = branch, place
    end
  end
  return used, found
end
