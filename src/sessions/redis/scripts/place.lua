#!lua flags=allow-oom
-- Where a session stands in its tenant's list, or stood: known as long as it or its tombstone is there.
-- ARGV: 1 tombstone ms, 2 session, 3 tenant
-- Returns: 'done' with the place as in listed.lua, or ''
--- @include session
local session = load_owned(ARGV[2], ARGV[3])
return reply('done', session and string.sub(member_of('', session[CREATED], name_of(session.key)), 1) or '')
