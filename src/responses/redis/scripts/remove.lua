#!lua flags=allow-oom
-- Removes a handle, and the nodes that only it led to.
-- KEYS: 1 index, 2 total, 3 handle, its nodes from the root
-- ARGV: 1 how it holds its node: 'own' or 'conv', 2 its path
-- Returns: 'removed', 'ended' (removed, and the tree's root is no more), 'unknown' or 'moved'
--- @include holders
local handle = KEYS[3]
local known = redis.call('HGET', handle, 'path')
if not known then
  return 'unknown'
elseif known ~= ARGV[2] then
  return 'moved'
end
drop(handle)
local path = {}
for key = 4, #KEYS do
  path[#path + 1] = KEYS[key]
end
local node = path[#path]
if exists(node) then
  redis.call('HDEL', node, ARGV[1])
  if ARGV[1] == 'own' then
    local bytes = charged(node) - redis.call('HSTRLEN', node, 'answer')
    redis.call('HDEL', node, 'answer')
    charge(node, bytes, redis.call('PEXPIRETIME', node))
  end
  settle(path)
end
return exists(path[1]) and 'removed' or 'ended'
