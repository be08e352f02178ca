-- What every script of a partition begins with. KEYS are all keys of the partition, which its hash tag keeps in one slot
-- of a cluster; no script touches another one:
--   1 s   hash: a session's text, or its tombstone's, by its name (session-text.ts)
--   2 d   sorted set: names of live sessions by the time of their next sweep, at most their deadline
--   3 x   sorted set: `s` and the name of a tombstone, or `r` and the digest of a retry, by the time it is forgotten
--   4 n   sorted set, all of score 0: of each live session in its tenant's list the tenant, when it was created, and its name
--   5 i   the same of sessions that clients' names choose, with a time of use that may be outdated
--   6 b   hash: prompts of such a session by its name (prompts.lua)
--   7 r   hash: by the digest of a repeated create the session it finds, its body's digest, and until when
--   8 m   sorted set: removals (`a:<artefact>` or `s:<session>`) by the time they are due
--   9 q   hash: what is known of a removal that was claimed or carries an artefact (removals.lua)
--  10 a   hash: artefacts whose record is in no session's text (removals.lua)
--  11 k   hash: the stored KV that counts towards a limit, by artefact (stored-kv.lua)
--  12 f   hash: artefacts that forked sessions hold (holders.lua)
--  13 w   string: the gateway that works on the partition (worker.lua)
-- Redis' own clock decides all times. A full Redis runs only scripts with the flag `allow-oom`: those that read, and those
-- that end a turn or a session.
local sessions, deadlines, forgets, lists, named, prompts, retries = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local removals, removal_infos, artefacts, kv, shares, worker = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
