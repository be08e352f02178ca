-- The short way of `begin` and `complete`, for what nearly every turn meets: a live session of its tenant whose time is not over. It takes many turns
-- at once, since a call and what it declares cost more than one turn does. All else, a text that is not whole included, is left to the scripts of
-- those names.
-- KEYS: none
-- ARGV: 1 prefix, 2 tombstone ms, 3 for each turn 'begin' or 'complete' and what that script has from its third argument on, a line each
-- Returns: one text, which takes a third of what a list of lists does to make and to read. The time, and for each turn a record separator (30) and
--          its session's text after it (but for its leases); behind that, where the artefact has a key, a unit separator (31) and its value.
--          Nothing for a turn that is left to its own script. No text in Redis has these separators, see session-text.ts.
--- @include arguments
--- @include leases
-- Most calls have one turn, and each call makes its functions anew: what it would take to make them, and to share variables among them, is
-- about what the turn takes. Hence one loop instead.
local match, sub, pcall = string.match, string.sub, redis.pcall

-- Kind, session, tenant, turn id, and `begin`'s lease ms or `complete`'s pod. Then what only `complete` has.
local turn_lines = '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n()'
local complete_lines = '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n()'

-- A session's lines from the fourth on, see session-text.ts: its end, and where sealed id, pod, artefact, record and leases begin.
local session_lines = '^%d+\n(%d+)\n%d+\n%d+\n%d+\n%d+\n%d+'
  .. '\n()[^\n]*\n[^\n]*\n()[^\n]*\n()[^\n]*\n()[^\n]*\n[^\n]*\n[^\n]*\n()[^\n]*$'
local number_lines = '^(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)'

-- Whether a command of `pcall` wrote.
local function has_written(outcome)
  return type(outcome) ~= 'table' or not outcome.err
end

local turns_text = ARGV[3]
local results, at = { string.format('%d', now) }, 1
while at <= #turns_text do
  local kind, session, tenant, turn, lease_ms_or_pod
  kind, session, tenant, turn, lease_ms_or_pod, at = match(turns_text, turn_lines, at)
  local more_prompt, more_output, more_cached, expiry, new_ttl, new_ends
  if kind == 'complete' then
    more_prompt, more_output, more_cached, expiry, new_ttl, new_ends, at = match(turns_text, complete_lines, at)
  end

  local name = sub(session, 1, 22)
  local key = prefix .. 's:' .. name
  local text = pcall('GET', key)
  -- How the text of every session begins that has this key and is this tenant's.
  local head = 'a2\n' .. sub(session, 23) .. '\n' .. sub(tenant, 1, 22) .. '\n'
  local ends, sealed_at, pod_at, artefact_at, record_at, leases_at
  if type(text) == 'string' and sub(text, 1, #head) == head then
    ends, sealed_at, pod_at, artefact_at, record_at, leases_at = match(text, session_lines, #head + 1)
  end
  local is_usual = ends and #ends <= 15 and tonumber(ends) > now

  local result = false
  if is_usual and kind == 'begin' then
    local leases = take_lease(sub(text, leases_at), turn, now + lease_ms_or_pod)
    local outcome
    if leases_at > #text then
      outcome = pcall('APPEND', key, leases)
    else
      outcome = pcall('SET', key, sub(text, 1, leases_at - 1) .. leases)
    end
    result = has_written(outcome) and text
  elseif is_usual and kind == 'complete' then
    local left = release_lease(sub(text, leases_at), turn)
    local created, was, ttl, turns, prompt, output, cached = match(text, number_lines, #head + 1)
    if expiry == 'set' then
      ttl, ends = new_ttl, new_ends
    elseif expiry == 'slide' then
      ends = string.format('%d', now + ttl * 1000)
    end
    prompt, output, cached = prompt + more_prompt, output + more_output, cached + more_cached
    -- The full script writes sums no larger than a text may have, and gets through to a full Redis.
    if left and math.max(prompt, output, cached) < 1e14 then
      local changed = string.format(
        '%s%s\n%s\n%s\n%d\n%d\n%d\n%d\n%s%s%s%s',
        head, created, ends, ttl, turns + 1, prompt, output, cached,
        sub(text, sealed_at, pod_at - 1), lease_ms_or_pod, sub(text, artefact_at - 1, leases_at - 1), left
      )
      result = has_written(pcall('SET', key, changed)) and changed
      -- The index never has a deadline later than it is. That it has it earlier costs the sweep a look, which moves it.
      if result and tonumber(ends) < tonumber(was) then
        redis.call('ZADD', prefix .. 'deadlines', ends, name)
      end
    end
  end

  -- With the value of the artefact's key where the session has one: it has an artefact, and no record of it in its text.
  if result and record_at - artefact_at > 1 and string.byte(text, record_at) == 10 then
    local value = pcall('GET', prefix .. 'a:' .. sub(text, artefact_at, record_at - 2))
    result = type(value) == 'string' and result .. '\31' .. value or result
  end
  results[#results + 1] = result or ''
end
return table.concat(results, '\30')
