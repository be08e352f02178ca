#!lua
-- Stores a node behind the last one of its path, with the handle of its response, and moves a conversation on to it.
-- KEYS: 1 index, 2 total, the response's handle if any, the conversation's handle if any, nodes from the root to the new one
-- ARGV: 1 ttl ms, 2 bytes of the tenant at most, 3 items, 4 answer or '', 5 path, 6 bytes of the chain, 7 sealed handle of
-- the response or '', 8 the turn that holds the conversation or ''
-- Returns: 'stored', 'taken', 'exists', 'gone' or 'full'
--- @include holders
local items, answer, sealed, turn = ARGV[3], ARGV[4], ARGV[7], ARGV[8]
local at = 3
local response, conversation
if sealed ~= '' then
  response, at = KEYS[at], at + 1
end
if turn ~= '' then
  conversation, at = KEYS[at], at + 1
end
local path = {}
for key = at, #KEYS do
  path[#path + 1] = KEYS[key]
end
local node, parent = path[#path], path[#path - 1]
if parent and not exists(parent) then
  return 'gone'
end
if conversation and redis.call('HGET', conversation, 'lock') ~= turn then
  return 'gone'
end
if exists(response) then
  return 'exists'
end
if exists(node) then
  return 'taken'
end
if parent and too_many_forks(parent) then
  return 'full'
end
local bytes = per_key + #items + #answer
local handle_bytes = per_key + #sealed
if not has_room(bytes + (response and handle_bytes or 0), ARGV[2]) then
  return 'full'
end
local ends = now + tonumber(ARGV[1])
redis.call('HSET', node, 'items', items)
if answer ~= '' then
  redis.call('HSET', node, 'answer', answer)
end
if response then
  redis.call('HSET', node, 'own', whole(ends))
  redis.call('HSET', response, 'path', ARGV[5], 'bytes', ARGV[6], 'sealed', sealed)
  charge(response, handle_bytes, ends)
end
if conversation then
  redis.call('HSET', node, 'conv', whole(ends))
  if parent then
    redis.call('HDEL', parent, 'conv')
  end
  redis.call('HSET', conversation, 'path', ARGV[5], 'bytes', ARGV[6])
  redis.call('HDEL', conversation, 'lock', 'until')
  charge(conversation, charged(conversation), ends)
end
charge(node, bytes, ends)
settle(path)
return 'stored'
