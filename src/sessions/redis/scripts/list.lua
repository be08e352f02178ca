#!lua flags=allow-oom
-- One page of a tenant's live sessions, newest first.
-- ARGV: 1 prefix, 2 tombstone ms, 3 tenant, 4 limit, 5 last session of the page before, or ''
-- Returns: 'more' or 'end' with whole snapshots, or 'again' (call again) after ending some expired sessions
--- @include session
--- @include branches
local tenant, limit = ARGV[3], tonumber(ARGV[4])
local index = tenant_key(tenant)

-- Where the page before ended stays known while the session or its tombstone is there; after that the list starts over.
-- A session that has ended takes its place in the index again for a moment.
local after = ARGV[5] ~= '' and load_owned(ARGV[5], tenant) or nil
local position = 0
if after then
  redis.call('ZADD', index, after[CREATED], name_of(after.key))
  position = redis.call('ZREVRANK', index, name_of(after.key)) + 1
  if not is_live(after) then
    redis.call('ZREM', index, name_of(after.key))
    position = position - 1
  end
end

-- A script holds up the turns of all sessions.
local page, ended, most_ended = {}, 0, 16
while #page <= limit do
  local names = redis.call('ZREVRANGE', index, position, position + limit - #page)
  if #names == 0 then
    return reply('end', page)
  end
  for _, name in ipairs(names) do
    local session = load_owned(name, tenant)
    if is_live(session) then
      position = position + 1
      page[#page + 1] = whole_snapshot(session)
    else
      redis.call('ZREM', index, name)
      ended = ended + 1
      if ended == most_ended then
        return reply('again', {})
      end
    end
  end
end
page[#page] = nil
return reply('more', page)
