#!lua flags=allow-oom
-- A part of the live sessions of a tenant, newest first, or of all, the latest deadline first: for operators.
-- ARGV: 1 prefix, 2 tombstone ms, 3 tenant's name or '', 4 place of the first, 5 limit
-- Returns: 'more' or 'end' with { place of the next part, whole snapshots }
--- @include session
--- @include branches
local index = ARGV[3] ~= '' and tenant_key(ARGV[3]) or deadlines
local place, limit = tonumber(ARGV[4]), tonumber(ARGV[5])
local names = redis.call('ZREVRANGE', index, place, place + limit - 1)
local page = {}
for _, name in ipairs(names) do
  local session = load(name)
  if not is_live(session) then
    redis.call('ZREM', index, name)
  else
    place = place + 1
    -- Branches beside the first are in no tenant's index.
    if redis.call('ZSCORE', tenant_key(session[TENANT]), name) then
      page[#page + 1] = whole_snapshot(session)
    end
  end
end
return reply(#names < limit and 'end' or 'more', { place, page })
