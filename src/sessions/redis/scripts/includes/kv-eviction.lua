-- Which stored KV is evicted: of every group of sizes the least recently used, and of these the one with the greatest
-- product of time since its last use and bytes. KV of a session in a turn stays. Needs what session.lua declares.
--- @include expiry
local function oldest_of(group, spared)
  local key, seen = prefix .. 'k:' .. group, {}
  while true do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local name = first[1]
    if not name or seen[name] then
      return nil
    end
    local session = load(name)
    if not is_live(session) or session[ARTEFACT] == '' then
      untrack_kv(name)
      redis.call('ZREM', key, name)
    elseif name == spared or held_until(session) > now then
      seen[name] = true
      redis.call('ZADD', key, now, name)
    else
      return session, tonumber(first[2])
    end
  end
end

local function next_victim(spared)
  local victim, greatest = nil, nil
  for group = smallest_group, largest_group do
    local session, used_ms = oldest_of(group, spared)
    if session then
      local score = (now - used_ms) * counted_kv(name_of(session.key))
      if not greatest or score > greatest then
        victim, greatest = session, score
      end
    end
  end
  return victim
end

local function drop_artefact(session, reason)
  queue_artefact(give_up_artefact(session), now)
  untrack_kv(name_of(session.key))
  session[KV_STATUS] = reason
  save(session)
end

-- Ends sessions that are due, then drops KV until `bytes` are left, each at most `limit` times. KV of the session
-- `spared` stays and does not count. Returns how many it dropped, and whether there may be more to end or to drop.
local function evict_kv(bytes, limit, spared)
  local _, looked = end_due(limit)
  local dropped = 0
  while looked < limit and dropped < limit do
    local spared_bytes = spared and counted_kv(spared) or 0
    local victim = stored_kv_bytes() - spared_bytes > bytes and next_victim(spared)
    if not victim then
      break
    end
    drop_artefact(victim, 'kv_evicted')
    dropped = dropped + 1
  end
  return dropped, looked == limit or dropped == limit
end
