#!lua flags=no-writes,allow-oom
-- What a tenant has in the partition.
-- ARGV: 1 unused, 2 tenant
-- Returns: 'done' with { sessions in its list, those that clients' names choose, bytes of its stored KV where it has a limit }
--- @include session
--- @include tenant-room
local bytes = string.format('%.0f', stored_kv_bytes(name_of(ARGV[2])))
return { 0, 'done', now, { count_of(lists, ARGV[2]), count_of(named, ARGV[2]), bytes } }
