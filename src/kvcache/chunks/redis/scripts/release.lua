-- Takes an artefact's chunks from it, and claims those that nobody else holds for deletion.
-- KEYS: 1 held by the name, 2 holders by chunk, 3 claimed by the name, 4 claimers by chunk
-- ARGV: none
-- Returns: all chunks claimed under the name, and 1 if the salt has no holder any more
--- @include chunks
add(claimed, claimers, take_all(held, holders))
return { redis.call('SMEMBERS', claimed), 1 - redis.call('EXISTS', holders) }
