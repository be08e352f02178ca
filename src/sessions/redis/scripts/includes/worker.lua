-- One gateway at a time works on a partition's indexes, for a while: then any other may. Needs what arguments.lua declares.
local work_ms = 5000

local function may_work(gateway)
  local holder = redis.call('GET', worker)
  if holder and holder ~= gateway then
    return false
  end
  if not holder then
    redis.call('SET', worker, gateway, 'PX', work_ms)
  end
  return true
end
