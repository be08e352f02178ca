-- What the gateway needs of a request whose client names its conversation, in headers for ext_proc, which sees no body:
--   x-context-model   the body's model, as it stands in JSON
--   x-context-name    a member of the body that names the conversation, `<member>:<text as in JSON>`, where no header does
--   x-context-marks   marks of the prompt, by which prompts under one name are told apart (src/openai/prompt-marks.ts)
--   x-context-ttl     for how long the client asks its prompt to be kept
--   x-context-body    the text names several models, or may spell the key with escapes: the gateway is to read the body
-- Envoy removes what clients send in them. `filter_context` of a route: `members`, those that may name a conversation,
-- separated by blanks; `pick`: a request with such a name goes on by the route of these headers.
local find, match, sub, byte, lower, format = string.find, string.match, string.sub, string.byte, string.lower, string.format
local bxor, rol, tobit = bit.bxor, bit.rol, bit.tobit

local max_name_bytes, max_model_bytes = 1538, 6144
-- How often a member's name is looked at: a text that is made to be slow may hold millions.
local max_looks = 2048

-- The text that begins there, up to its closing quote. Nil: it is longer. Each byte is looked at once, whatever it is.
local function text_at(text, from, max_bytes)
  local at = from
  while at - from <= max_bytes do
    local found = find(text, '["\\]', at)
    if found == nil or found - from > max_bytes then return nil end
    if byte(text, found) == 34 then return sub(text, from, found - 1) end
    at = found + 2
  end
  return nil
end

-- The first text that stands behind a member's name, and whether other ones may follow.
local function texts_of(text, name, max_bytes, looks_for_others)
  -- Every quote of a body holds up a search that begins with one, and bodies have fewer underscores.
  local before, rest = match(name, "^([^_]*)(_.*)$")
  before, rest = before or "", rest or name
  local first, looks = nil, 0
  local start, stop = find(text, rest, 1, true)
  while stop ~= nil do
    looks = looks + 1
    if looks > max_looks then return first, true end
    local from = sub(text, start - #before, start - 1) == before and match(text, '^[ \t\r\n]*:[ \t\r\n]*"()', stop + 1)
    local value = from and text_at(text, from, max_bytes) or nil
    if first == nil then first = value elseif value ~= nil and value ~= first then return first, true end
    if first ~= nil and not looks_for_others then return first, true end
    start, stop = find(text, rest, stop, true)
  end
  return first, false
end

-- Whether some letter of a key may be written as \u006d, \u006f, \u0064, \u0065 or \u006c. The digits first: they are rarer.
local function may_spell_model(text)
  local looks, at = 0, find(text, "006", 1, true)
  while at ~= nil do
    looks = looks + 1
    if looks > max_looks or sub(text, at - 2, at - 1) == "\\u" then return true end
    at = find(text, "006", at + 3, true)
  end
  return false
end

-- Marks. As in src/openai/prompt-marks.ts, number for number.
local max_marked_bytes, max_marks = 4194304, 64
local text_bytes, other_bytes, look_bytes, introduction_bytes = 256, 32, 320, 1024

local function mix_one(state, value) return tobit(bxor(rol(state, 7), value) * 31 + 17) end

local function mix(state, head)
  state = mix_one(state, 256)
  for at = 1, #head, 4 do
    local one, two, three, four = byte(head, at, at + 3)
    state = mix_one(state, one + (two or 0) * 256 + (three or 0) * 65536 + (four or 0) * 16777216)
  end
  return state
end

local function mark_of(state) return format("%08x", state % 4294967296) end

local function until_quote(text, from)
  local at = from
  while true do
    local found = find(text, '["\\]', at) or #text + 1
    if byte(text, found) ~= 92 or found == #text then return sub(text, from, math.min(found, from + text_bytes) - 1) end
    at = found + 2
  end
end

-- What stands behind a member's name, if anything, and where its value begins.
local function value_in(text, from, bytes)
  local look = sub(text, from, from + bytes - 1)
  return look, match(look, "^[ \t\r\n]*:[ \t\r\n]*()")
end

local function head_of(text, from)
  local look, value = value_in(text, from, look_bytes)
  if value == nil or byte(look, value) == 123 then return nil end
  local content = match(look, '^"()', value) or match(look, '^%[[^%]]-"text"[ \t\r\n]*:[ \t\r\n]*"()', value)
  if content ~= nil then return until_quote(look, content) end
  return match(sub(look, value, value + other_bytes - 1), "^[^}]*")
end

-- Of what comes before the messages: of a list all that fits, without the line that changes with every request (below).
local function introduction_of(text, from)
  local look, value = value_in(text, from, introduction_bytes)
  if value == nil then return nil end
  if byte(look, value) ~= 91 then return head_of(text, from) end
  return match(string.gsub(sub(look, value), '"x%-anthropic%-billing%-header:[^"]*"', '""', 1), "^[^%]]*")
end

local function first_of(text, name, read)
  local looks = 0
  local _, stop = find(text, name, 1, true)
  while stop ~= nil and looks < max_looks do
    looks = looks + 1
    local head = read(text, stop + 1)
    if head ~= nil then return head end
    _, stop = find(text, name, stop + 1, true)
  end
  return ""
end

-- What comes before the messages, by path.
local introductions = { ["/v1/messages"] = '"system"', ["/v1/responses"] = '"instructions"' }

local function prompt_marks(text, path)
  text = sub(text, 1, max_marked_bytes)
  local introduction = introductions[path]
  local marks, state, looks = {}, introduction and mix(0, first_of(text, introduction, introduction_of)) or 0, 0
  local _, stop = find(text, '"content"', 1, true)
  while stop ~= nil and looks < max_looks do
    looks = looks + 1
    local head = head_of(text, stop + 1)
    if head ~= nil then
      state = mix(state, head)
      marks[#marks + 1] = state
    end
    _, stop = find(text, '"content"', stop + 1, true)
  end
  if #marks == 0 then
    local prompt = first_of(text, '"prompt"', head_of)
    return mark_of(mix(state, prompt ~= "" and prompt or first_of(text, '"input"', head_of)))
  end
  local last = {}
  for at = math.max(1, #marks - max_marks + 1), #marks do last[#last + 1] = mark_of(marks[at]) end
  return table.concat(last, ",")
end

local function is_encoded(headers)
  local coding, kind = headers:get("content-encoding") or "", headers:get("content-type") or ""
  return (coding ~= "" and lower(coding) ~= "identity") or find(lower(kind), "multipart/", 1, true)
end

local function asked_ttl(text)
  if texts_of(text, '"prompt_cache_retention"', 16) == "24h" then return "24h" end
  -- The rarer text first.
  return find(text, '1h"', 1, true) and find(text, '"ttl":"1h"', 1, true) and "1h" or nil
end

local function body_name(text, members)
  for member in string.gmatch(members or "", "%S+") do
    local value = texts_of(text, '"' .. member .. '"', max_name_bytes)
    if value ~= nil and value ~= "" then return member .. ":" .. value end
  end
  return nil
end

-- Claude Code puts a line with a hash in front of its system prompt, another one with every request: no engine that keeps
-- it would find the prompt's beginning again. Blanks in its place, as many as it has.
local function without_billing_line(text)
  local _, from = find(text, '"system"', 1, true)
  local first, stop = nil, nil
  if from ~= nil then first, stop = find(text, '"x-anthropic-billing-header:', from, true) end
  local quote = first and find(text, '"', stop, true)
  if quote == nil then return nil end
  return sub(text, 1, stop) .. string.rep(" ", quote - stop - 1) .. sub(text, quote)
end

function envoy_on_request(handle)
  local headers, context = handle:headers(), handle:filterContext()
  -- (These objects do not outlive the wait for the body.)
  local members, picks = context:get("members"), context:get("pick")
  local path = match(headers:get(":path"), "^[^?]*")
  if is_encoded(headers) then return end
  local body = handle:body()
  if body == nil then return end
  local text = body:getBytes(0, body:length())
  headers = handle:headers()
  -- No other text takes the members that the gateway may have Envoy append.
  if not (find(text, "^[ \t\r\n]*{") and find(sub(text, -256), "}[ \t\r\n]*$")) then return end
  local name = body_name(text, members)
  if picks and name == nil then return end
  local changed = path == "/v1/messages" and without_billing_line(text)
  if changed then body:setBytes(changed) end
  local model, others = texts_of(text, '"model"', max_model_bytes, true)
  others = others or (model ~= nil and may_spell_model(text))
  if name ~= nil then headers:replace("x-context-name", name) end
  if model ~= nil and not others then
    headers:replace("x-context-model", model)
    headers:replace("x-context-marks", prompt_marks(text, path))
    local ttl = asked_ttl(text)
    if ttl ~= nil then headers:replace("x-context-ttl", ttl) end
  elseif model ~= nil then
    headers:replace("x-context-body", "1")
  end
  if others or picks then handle:clearRouteCache() end
end
