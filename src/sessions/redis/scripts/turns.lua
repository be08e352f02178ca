-- The short way of `begin` and `complete`, for what nearly every turn meets: a live session of its tenant whose time is not over. It takes many turns
-- at once, since a call and what it declares cost more than one turn does, and reads no more of a text than a turn needs. All else, a text that
-- is not whole included, is left to the scripts of those names.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 for each turn 'begin' or 'complete' and what that script has from its third argument on, a line each
-- Returns: 'turns' with a list: for each turn false, or its session's text after it (but for its leases), or that text and the value of its
--          artefact's key
--- @include arguments
--- @include leases
local find, match, sub, format = string.find, string.match, string.sub, string.format

-- Of the session that was read: its key and text, how every session of the tenant's begins, its numbers, and where its other lines begin.
local text_key, text, head
local created, ends, ttl, turns, prompt, output, cached
local sealed_at, pod_at, artefact_at, record_at, leases_at

local function skip_lines(at, lines)
  for _ = 1, lines do
    local line_feed = at and find(text, '\n', at, true)
    at = line_feed and line_feed + 1
  end
  return at
end

-- Whether the short way can be taken. The lines are those of session-text.ts.
local function read_usual(session, tenant)
  text_key = prefix .. 's:' .. sub(session, 1, 22)
  text = redis.pcall('GET', text_key)
  head = 'a2\n' .. sub(session, 23) .. '\n' .. sub(tenant, 1, 22) .. '\n'
  if type(text) ~= 'string' or sub(text, 1, #head) ~= head then
    return false
  end
  created, ends, ttl, turns, prompt, output, cached, sealed_at =
    match(text, '^(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n()', #head + 1)
  if not ends or #ends > 15 or tonumber(ends) <= now then
    return false
  end
  pod_at = skip_lines(sealed_at, 2)
  artefact_at = skip_lines(pod_at, 1)
  record_at = skip_lines(artefact_at, 1)
  leases_at = skip_lines(record_at, 3)
  return leases_at and not find(text, '\n', leases_at, true)
end

local function has_written(outcome)
  return not (type(outcome) == 'table' and outcome.err)
end

-- With the value of the artefact's key where the session has one.
local function told(changed_text)
  local artefact_ends = record_at - 2
  if artefact_ends < artefact_at or string.byte(text, record_at) ~= 10 then
    return changed_text
  end
  local value = redis.pcall('GET', prefix .. 'a:' .. sub(text, artefact_at, artefact_ends))
  return type(value) == 'string' and { changed_text, value } or changed_text
end

local function begin(session, tenant, turn, lease_ms)
  if not read_usual(session, tenant) then
    return false
  end
  local leases = take_lease(sub(text, leases_at), turn, now + lease_ms)
  local outcome
  if leases_at > #text then
    outcome = redis.pcall('APPEND', text_key, leases)
  else
    outcome = redis.pcall('SET', text_key, sub(text, 1, leases_at - 1) .. leases)
  end
  return has_written(outcome) and told(text)
end

local function complete(session, tenant, turn, pod, more_prompt, more_output, more_cached, expiry, new_ttl, new_ends)
  local left = read_usual(session, tenant) and release_lease(sub(text, leases_at), turn)
  if not left then
    return false
  end
  local was = ends
  if expiry == 'set' then
    ttl, ends = new_ttl, new_ends
  elseif expiry == 'slide' then
    ends = format('%d', now + ttl * 1000)
  end
  prompt, output, cached = prompt + more_prompt, output + more_output, cached + more_cached
  -- The full script gets through to a full Redis, and writes sums no larger than a text may have.
  if math.max(prompt, output, cached) >= 1e14 then
    return false
  end
  local changed = format(
    '%s%s\n%s\n%s\n%d\n%d\n%d\n%d\n%s%s%s%s',
    head, created, ends, ttl, turns + 1, prompt, output, cached,
    sub(text, sealed_at, pod_at - 1), pod, sub(text, artefact_at - 1, leases_at - 1), left
  )
  if not has_written(redis.pcall('SET', text_key, changed)) then
    return false
  end
  -- The index never has a deadline later than it is. That it has it earlier costs the sweep a look, which moves it.
  if tonumber(ends) < tonumber(was) then
    redis.call('ZADD', prefix .. 'deadlines', ends, sub(session, 1, 22))
  end
  return told(changed)
end

local line = '([^\n]*)\n'
local ways = {
  begin = { run = begin, lines = '^' .. line:rep(4) },
  complete = { run = complete, lines = '^' .. line:rep(10) },
}

-- Takes what `find` found of a turn's lines; returns where the next turn's begin, too.
local function run(way, _, stop, ...)
  return way.run(...), stop + 1
end

local turns_text = ARGV[3]
local results, at = {}, 1
while at <= #turns_text do
  local _, stop, name = find(turns_text, '^' .. line, at)
  local way = ways[name]
  results[#results + 1], at = run(way, find(turns_text, way.lines, stop + 1))
end
return { 0, 'turns', now, results }
