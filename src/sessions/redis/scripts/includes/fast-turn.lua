-- The short way of `begin` and `complete`, for what nearly every turn meets: a live session of its tenant whose time is not over. It reads no
-- more of the text than the turn needs, and stands in front of the other parts: whatever a script declares is made anew by every call. All
-- else, a text that is not whole included, is left to the script behind it. Needs ARGV[1] prefix, ARGV[3] session, ARGV[4] tenant.
--- @include arguments
--- @include leases
local name = string.sub(ARGV[3], 1, 22)
local text_key = prefix .. 's:' .. name
local text = redis.pcall('GET', text_key)
-- The lines of session-text.ts: the first three, seven numbers, and from here on where the others begin.
local head = 'a2\n' .. string.sub(ARGV[3], 23) .. '\n' .. string.sub(ARGV[4], 1, 22) .. '\n'
local created, ends, ttl, turns, prompt, output, cached
local sealed_at, pod_at, artefact_at, record_at, leases_at

local find = string.find

local function skip_lines(at, lines)
  for _ = 1, lines do
    local line_feed = at and find(text, '\n', at, true)
    at = line_feed and line_feed + 1
  end
  return at
end

if type(text) == 'string' and string.sub(text, 1, #head) == head then
  created, ends, ttl, turns, prompt, output, cached, sealed_at =
    string.match(text, '^(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n()', #head + 1)
end
if ends and #ends <= 15 and tonumber(ends) > now then
  pod_at = skip_lines(sealed_at, 2)
  artefact_at = skip_lines(pod_at, 1)
  record_at = skip_lines(artefact_at, 1)
  leases_at = skip_lines(record_at, 3)
end
-- Whether the short way can be taken.
local is_usual = leases_at and not find(text, '\n', leases_at, true)

-- The session's text as it is after the turn, but for its leases; and the value of its artefact's key where it has one.
local function brief(changed_text)
  local artefact_ends = record_at - 2
  if artefact_ends < artefact_at or string.byte(text, record_at) ~= 10 then
    return { changed_text, now }
  end
  local value = redis.pcall('GET', prefix .. 'a:' .. string.sub(text, artefact_at, artefact_ends))
  return { changed_text, now, type(value) == 'string' and value or false }
end
