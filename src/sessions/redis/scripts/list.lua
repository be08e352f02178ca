#!lua flags=allow-oom
-- One page of a tenant's live sessions, newest first.
-- ARGV: 1 prefix, 2 tombstone ms, 3 tenant, 4 limit, 5 last session of the page before, or ''
-- Returns: 'more' or 'end' with the snapshots
--- @include session
local tenant, limit = ARGV[3], tonumber(ARGV[4])
local index = tenant_key(tenant)

-- Where the page before ended stays known while the session or its tombstone is there; after that the list starts over.
local after = ARGV[5] ~= '' and load_owned(ARGV[5], tenant) or nil
local boundary = after and tonumber(after[CREATED])
local position = after and redis.call('ZCOUNT', index, '(' .. after[CREATED], '+inf') or 0

-- Redis orders equal scores by bytes; Lua would compare by the server's locale.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local function is_past_boundary(session)
  return tonumber(session[CREATED]) < boundary or is_before(name_of(session.key), name_of(after.key))
end

local page = {}
while #page <= limit do
  local names = redis.call('ZREVRANGE', index, position, position + limit - #page)
  if #names == 0 then
    return reply('end', page)
  end
  for _, name in ipairs(names) do
    local session = load_owned(name, tenant)
    if is_live(session) then
      position = position + 1
      if not boundary or is_past_boundary(session) then
        page[#page + 1] = snapshot(session)
      end
    else
      redis.call('ZREM', index, name)
    end
  end
end
page[#page] = nil
return reply('more', page)
