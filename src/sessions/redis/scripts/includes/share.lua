-- Sharing stored KV. Needs what session.lua declares.

-- Gives a session that has none the stored KV of another one. What too many hold it does without.
local function share_artefact(from, session)
  local artefact = artefact_of(from)
  if not artefact then
    return
  end
  local holders, owner = holders_of(artefact)
  if #holders < max_holders then
    holders[#holders + 1] = name_of(session.key)
    write_holders(artefact, owner or from.key, holders)
    session[ARTEFACT], session[RECORD] = artefact, from[RECORD]
    touch_kv(artefact)
  end
end
