#!lua flags=allow-oom
-- Names the data of this store.
-- ARGV: 1 prefix, 2 tombstone ms, 3 name of a store that has none yet, or has lost it
-- Returns: 'done' with the name
--- @include arguments
redis.call('SET', prefix .. 'store', ARGV[3], 'NX')
return { 0, 'done', now, redis.call('GET', prefix .. 'store') }
