-- What the gateway needs of a request whose client names its conversation, in headers for ext_proc, which sees no body:
--   x-context-model   the body's model, as it stands in JSON
--   x-context-name    a member of the body that names the conversation, `<member>:<text as in JSON>`, where no header does
--   x-context-marks   marks of the prompt, by which prompts under one name are told apart (src/openai/prompt-marks.ts)
--   x-context-ttl     for how long the client asks its prompt to be kept
--   x-context-body    the text names several models: the gateway is to read the body itself
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
  local first, looks = nil, 0
  local _, stop = find(text, name, 1, true)
  while stop ~= nil do
    looks = looks + 1
    if looks > max_looks then return first, true end
    local from = match(text, '^[ \t\r\n]*:[ \t\r\n]*"()', stop + 1)
    local value = from and text_at(text, from, max_bytes)
    if first == nil then first = value elseif value ~= nil and value ~= first then return first, true end
    if first ~= nil and not looks_for_others then return first, true end
    _, stop = find(text, name, stop, true)
  end
  return first, false
end

-- Marks. As in src/openai/prompt-marks.ts, number for number.
local max_marks, text_bytes, other_bytes, look_bytes = 64, 256, 32, 320
local max_marked_bytes = 4194304

local function mix_one(state, value) return tobit(bxor(rol(state, 7), value) * 31 + 17) end

local function mix(state, head)
  state = mix_one(state, 256)
  for at = 1, #head do state = mix_one(state, byte(head, at)) end
  return state
end

local function mark_of(state) return format("%08x", state % 4294967296) end

local function until_quote(text)
  local at = 1
  while true do
    local found = find(text, '["\\]', at)
    if found == nil then return sub(text, 1, text_bytes) end
    if byte(text, found) == 34 or found == #text then return sub(text, 1, math.min(found - 1, text_bytes)) end
    at = found + 2
  end
end

local function head_of(text, from)
  local value = match(sub(text, from, from + look_bytes - 1), "^[ \t\r\n]*:[ \t\r\n]*(.*)$")
  if value == nil or sub(value, 1, 1) == "{" then return nil end
  local content = match(value, '^"(.*)$') or match(value, '^%[[^%]]-"text"[ \t\r\n]*:[ \t\r\n]*"(.*)$')
  if content ~= nil then return until_quote(content) end
  return match(sub(value, 1, other_bytes), "^[^}]*")
end

local function prompt_marks(text)
  text = sub(text, 1, max_marked_bytes)
  local marks, state = {}, 0
  local _, stop = find(text, '"content"', 1, true)
  local looks = 0
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
    local _, at = find(text, '"prompt"', 1, true)
    if at == nil then _, at = find(text, '"input"', 1, true) end
    return mark_of(mix(0, at and head_of(text, at + 1) or ""))
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
  return find(text, '"ttl":"1h"', 1, true) and "1h" or nil
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
  local is_messages = find(headers:get(":path"), "^/v1/messages")
  if is_encoded(headers) then return end
  local body = handle:body()
  if body == nil then return end
  local text = body:getBytes(0, body:length())
  headers = handle:headers()
  -- No other text takes the members that the gateway may have Envoy append.
  if not (find(text, "^[ \t\r\n]*{") and find(sub(text, -256), "}[ \t\r\n]*$")) then return end
  local name = body_name(text, members)
  if picks and name == nil then return end
  local changed = is_messages and without_billing_line(text)
  if changed then body:setBytes(changed) end
  local model, others = texts_of(text, '"model"', max_model_bytes, true)
  if name ~= nil then headers:replace("x-context-name", name) end
  if model ~= nil and not others then
    headers:replace("x-context-model", model)
    headers:replace("x-context-marks", prompt_marks(text))
    local ttl = asked_ttl(text)
    if ttl ~= nil then headers:replace("x-context-ttl", ttl) end
  elseif model ~= nil then
    headers:replace("x-context-body", "1")
  end
  if others or picks then handle:clearRouteCache() end
end
