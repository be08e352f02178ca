#!lua flags=no-writes,allow-oom
-- Reads the texts of nodes.
-- KEYS: nodes
-- Returns: items and answer of each, or nothing
local texts = {}
for at, key in ipairs(KEYS) do
  texts[at] = redis.call('HMGET', key, 'items', 'answer')
end
return texts
