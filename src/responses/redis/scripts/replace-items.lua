#!lua flags=allow-oom
-- Replaces the items of a node of a conversation.
-- KEYS: 1 index, 2 total, 3 handle of the conversation, 4 node
-- ARGV: 1 the turn that holds the conversation, 2 SHA-1 of the items before, 3 items, 4 bytes that the chain has less
-- Returns: 1, or 0: they are others by now, or the turn does not hold the conversation
--- @include ledger
local conversation, node = KEYS[3], KEYS[4]
local items = redis.call('HGET', node, 'items')
if redis.call('HGET', conversation, 'lock') ~= ARGV[1] or not items or redis.sha1hex(items) ~= ARGV[2] then
  return 0
end
redis.call('HSET', node, 'items', ARGV[3])
charge(node, charged(node) + #ARGV[3] - #items, redis.call('PEXPIRETIME', node))
redis.call('HINCRBY', conversation, 'bytes', -tonumber(ARGV[4]))
return 1
