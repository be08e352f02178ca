-- Lets the chunks go that were claimed under a name.
-- KEYS: 1 held by the name, 2 holders by chunk, 3 claimed by the name, 4 claimers by chunk
-- ARGV: none
-- Returns: nothing
--- @include chunks
take_all(claimed, claimers)
