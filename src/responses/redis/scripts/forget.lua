#!lua flags=allow-oom
-- Removes keys of a tenant, whatever they hold.
-- KEYS: 1 index, 2 total, further keys
-- ARGV: the member of the index for each further key
--- @include ledger
for at, member in ipairs(ARGV) do
  if redis.call('ZREM', index, member) == 1 then
    redis.call('DECRBY', total, string.match(member, '^%d+'))
  end
  redis.call('DEL', KEYS[at + 2])
end
if not exists(index) then
  redis.call('DEL', total)
end
