-- What Envoy does with a turn after the gateway has decided on it. The decision stands in the dynamic metadata `ctx`:
--   splice    members to append to the request's JSON object, as JSON without braces
--   model     the session's model: a body that names another one is refused
--   headers   response headers for a 2xx, one `name:value` per line
--   turn      present on every turn, whatever else is
-- Any other request gets the constants of envoy.yaml (`filter_context.splice`), so that it starts from no session's KV.
-- On a route with `keeps_responses` (metadata, or `filter_context`) one that no gateway decided on must not continue a response.
-- What the access log reports of the answer is written to the dynamic metadata `answer`: stream, usage, timings.
local find, match, gmatch, sub, lower = string.find, string.match, string.gmatch, string.sub, string.lower

local max_request_bytes = 16777216

local function decision(handle) return handle:streamInfo():dynamicMetadata():get("ctx") end

-- Request ------------------------------------------------------------------------------------------------------------

-- In the form of OpenAI, or of Anthropic, whose API has a type of its own for a large body.
local function refuse(handle, status, code, param, message)
  local is_anthropic = find(handle:headers():get(":path"), "^/v1/messages")
  local kind = is_anthropic and status == "413" and code or "invalid_request_error"
  handle:respond(
    { [":status"] = status, ["content-type"] = "application/json", ["x-should-retry"] = "false" },
    (is_anthropic and '{"type":"error",' or "{") .. '"error":{"message":"' .. message .. '","type":"' .. kind
      .. '","param":' .. param .. ',"code":"' .. code .. '"}}'
  )
end

-- True if the body names a model and never the expected one. A name with escapes is left to the engine, and so is an
-- object that has the expected model somewhere else: no KV is at stake, only the clarity of the error.
local function names_other_model(text, expected)
  local other = false
  local _, stop = find(text, '"model"', 1, true)
  while stop ~= nil do
    local value = match(text, '^%s*:%s*"([^"]*)"', stop + 1)
    if value == expected or (value ~= nil and find(value, "\\", 1, true)) then return false end
    other = other or value ~= nil
    _, stop = find(text, '"model"', stop, true)
  end
  return other
end

-- Where the object's last brace stands: nearly always among the last characters.
local function closing_brace(text)
  return find(text, "}[ \t\r\n]*$", -256) or (find(text, "^[ \t\r\n]*$", -256) and find(text, "}[ \t\r\n]*$"))
end

-- The engine would decode such a body, and find other members in it than those at its end.
local function is_encoded(headers)
  local coding, kind = headers:get("content-encoding") or "", headers:get("content-type") or ""
  return (coding ~= "" and lower(coding) ~= "identity") or find(lower(kind), "multipart/", 1, true)
end

-- The gateway itself answers these, or has to know what begins.
local function is_gateways_own(path)
  return find(path, "^/v1/context") or find(path, "^/v1/conversations") or find(path, "^/v1/responses/")
end

-- A body in which these are not found within so many quotes, brackets and escapes counts as one that has them.
local previous, conversation, longest_look = 'previous_response_id"%s*:%s*"', 'conversation"%s*:%s*["{]', 200000

-- True if the outermost object names a response or a conversation. Of a schema of a tool these are names like others.
local function continues(text)
  if not find(text, '"' .. previous) and not find(text, '"' .. conversation) then return false end
  local depth, at, in_string = 0, 1, false
  for _ = 1, longest_look do
    local first, _, mark = find(text, in_string and '(["\\])' or '(["%[%]{}])', at)
    if first == nil then return false end
    at = first + (mark == "\\" and 2 or 1)
    if mark == '"' then
      in_string = not in_string
      local is_name = in_string and depth == 1
      if is_name and (find(text, "^" .. previous, at) or find(text, "^" .. conversation, at)) then return true end
    elseif mark ~= "\\" then
      depth = depth + ((mark == "{" or mark == "[") and 1 or -1)
    end
  end
  return true
end

-- No gateway decided; `local_reply_config` writes the body.
local function refuse_without_gateway(handle) return handle:respond({ [":status"] = "503" }, "") end

function envoy_on_request(handle)
  local headers, ctx = handle:headers(), decision(handle)
  if ctx == nil and is_gateways_own(headers:get(":path")) then return refuse_without_gateway(handle) end
  -- Where responses are kept, the engine does not have what went before.
  local looks = ctx == nil
    and (handle:metadata():get("keeps_responses") or handle:filterContext():get("keeps_responses"))
  if ctx == nil or ctx.turn == nil then ctx = { splice = handle:filterContext():get("splice") } end
  if ctx.splice and handle:metadata():get("ignores_splice") then return handle:respond({ [":status"] = "404" }, "") end
  local encoded = is_encoded(headers) -- (The object does not outlive the wait for the body.)
  local body = (ctx.splice or ctx.model or looks) and handle:body()
  if not body then return end
  if encoded then
    return refuse(handle, "415", "unsupported_media_type", "null",
      'Send the body as uncompressed JSON with \\"Content-Type: application/json\\".')
  end
  if body:length() > max_request_bytes then
    return refuse(handle, "413", "request_too_large", "null", "The request body is too large.")
  end
  local text = body:getBytes(0, body:length())
  -- The last member of a name wins in every engine's parser, so the gateway's fields go behind the client's.
  local last = find(text, "^[ \t\r\n]*{") and closing_brace(text)
  if not last then
    return refuse(handle, "400", "invalid_json", "null", "The request body is not a JSON object.")
  end
  if ctx.model and names_other_model(text, ctx.model) then
    return refuse(handle, "400", "model_mismatch", '"model"',
      "The session was created with another model. Use its model, or create a new context.")
  end
  if looks and continues(text) then return refuse_without_gateway(handle) end
  if ctx.splice then
    local comma = find(text, "^[ \t\r\n]*{[ \t\r\n]*}") and "" or ","
    local length = body:setBytes(sub(text, 1, last - 1) .. comma .. ctx.splice .. "}")
    handle:headers():replace("content-length", tostring(length))
  end
end

-- Response -----------------------------------------------------------------------------------------------------------

local stream_ends = { "\ndata: [DONE]", "\ndata:[DONE]", "\nevent: response.completed", "\nevent: response.incomplete", "\nevent: message_stop" }
local stream_errors = { '\ndata: {"error"', '\ndata:{"error"', "\nevent: error", "\nevent: response.failed", "\nerror:" }

-- Token counts: `usage`, and llama-server's `timings`. Inside a JSON string their quotes would be escaped.
local counts = {
  { key = "usage", name = '"usage"', count = '_tokens"%s*:%s*%d' },
  { key = "timings", name = '"timings"', count = '"prompt_n"%s*:%s*%d' },
}
local longest_counts = 4096

local function note(handle, key, value) handle:streamInfo():dynamicMetadata():set("answer", key, value) end

local function has_any(text, marks)
  for _, mark in ipairs(marks) do
    if find(text, mark, 1, true) then return true end
  end
  return false
end

local function object_behind(text, stop)
  return stop and match(sub(text, stop + 1, stop + longest_counts), "^%s*:%s*(%b{})")
end

-- Notes the last object of each kind in the text. Two looks per kind, bounded by `longest_counts`.
-- Anthropic's streams tell the prompt's tokens at their start, and perhaps not again: that `usage` is returned, and is
-- noted in front of a later one.
local function note_counts(handle, text, is_stream, start)
  for _, kind in ipairs(counts) do
    local first, last
    local _, stop = find(text, kind.name, 1, true)
    while stop ~= nil do
      first, last = first or stop, stop
      _, stop = find(text, kind.name, stop, true)
    end
    local object = object_behind(text, last)
    if is_stream and kind.key == "usage" and not start then
      local earliest = object_behind(text, first)
      start = earliest and find(earliest, '"input_tokens"%s*:%s*%d') and earliest
    end
    if object and find(object, kind.count) then
      local is_later = kind.key == "usage" and start and start ~= object
      note(handle, kind.key, is_later and "[" .. start .. "," .. object .. "]" or object)
    end
  end
  return start
end

-- Reads the answer as it passes. What may be cut by the end of a chunk is looked at again with the next one: of a
-- stream the line that has not ended, of a JSON text its end.
local function read_answer(handle, is_stream)
  -- A stream without its last event, or with an error in it, is not a completed turn.
  local state = is_stream and "cut" or nil
  local rest, start = "\n", nil
  if is_stream then note(handle, "stream", state) end
  for chunk in handle:bodyChunks() do
    local text = rest .. chunk:getBytes(0, chunk:length())
    if is_stream and state ~= "failed" then
      local now = has_any(text, stream_errors) and "failed" or has_any(text, stream_ends) and "done" or state
      if now ~= state then note(handle, "stream", now) end
      state = now
    end
    start = note_counts(handle, text, is_stream, start)
    rest = sub(is_stream and match(text, "\n[^\n]*$") or text, -longest_counts)
  end
end

function envoy_on_response(handle)
  local headers, ctx = handle:headers(), decision(handle)
  if ctx == nil or ctx.turn == nil then return end
  -- Only the gateway says which session an answer belongs to.
  headers:remove("x-session-id")
  headers:remove("x-context-cache")
  if sub(headers:get(":status"), 1, 1) ~= "2" then return end
  for name, value in gmatch(ctx.headers or "", "([^:\n]+):([^\n]*)\n") do headers:replace(name, value) end
  local content_type = headers:get("content-type") or ""
  if find(content_type, "text/event-stream", 1, true) then
    read_answer(handle, true)
  elseif find(content_type, "^application/json$") or find(content_type, "^application/json;") then
    read_answer(handle, false)
  end
end
