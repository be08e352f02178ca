-- Prompts that run under a client's name, by the branch of the session that each has. Needs what arguments.lua declares.
--   b: by session name its time in the index `i`, and a line of each branch: number, when it was last begun, the last mark
--      of its prompt

-- The time of use and the mark of each branch by its number, and the time in the index.
local function read_branches(name)
  local value = redis.pcall('HGET', prompts, name)
  local text, branches = type(value) == 'string' and value or '', {}
  for branch, used_ms, mark in string.gmatch(text, '\n(%d+) (%d+) (%S+)') do
    branches[tonumber(branch)] = { used = tonumber(used_ms), mark = mark }
  end
  return branches, string.match(text, '^%d+')
end

local function write_branches(name, branches, index_ms)
  local lines = { index_ms }
  for branch, prompt in pairs(branches) do
    lines[#lines + 1] = string.format('%d %.0f %s', branch, prompt.used, prompt.mark)
  end
  redis.call('HSET', prompts, name, table.concat(lines, '\n'))
end

-- The branch whose prompt the marks continue, the longest first. `marks` are separated by blanks.
local function continued_branch(branches, marks)
  local all, found, longest = ' ' .. marks .. ' ', nil, 0
  for branch, prompt in pairs(branches) do
    local place = string.find(all, ' ' .. prompt.mark .. ' ', 1, true) or 0
    if place > longest then
      found, longest = branch, place
    end
  end
  return found
end

local function remember_prompt(name, branches, index_ms, branch, marks)
  branches[branch] = { used = now, mark = string.match(marks, '%S+$') }
  write_branches(name, branches, index_ms)
end
