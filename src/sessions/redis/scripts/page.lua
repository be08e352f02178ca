#!lua flags=allow-oom
-- A part of the partition's live sessions, the latest deadline first: for operators.
-- ARGV: 1 tombstone ms, 2 place of the first, 3 how many at most
-- Returns: 'more' or 'end' with { place of the next part, whole snapshots }
--- @include session
--- @include branches
local place, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local names = redis.call('ZREVRANGE', deadlines, place, place + limit - 1)
local page = {}
for _, name in ipairs(names) do
  local session = load(name)
  if not is_live(session) then
    redis.call('ZREM', deadlines, name)
  else
    place = place + 1
    -- Branches beside the first are in no tenant's list.
    if redis.call('ZSCORE', lists, member_of(session[TENANT], session[CREATED], name)) then
      page[#page + 1] = whole_snapshot(session)
    end
  end
end
return reply(#names < limit and 'end' or 'more', { place, page })
