#!lua flags=allow-oom
-- Ends sessions whose deadline has passed and that no turn holds, and forgets tombstones and retries.
-- ARGV: 1 tombstone ms, 2 the gateway, or '' for a call that need not be the partition's worker, 3 how many at most
-- Returns: 'done' with how many were ended and how many looked at, or 'busy'
--- @include session
--- @include expiry
--- @include worker
if ARGV[2] ~= '' and not may_work(ARGV[2]) then
  return reply('busy', { 0, 0 })
end
local ended, looked = end_due(ARGV[3])
return reply('done', { ended, math.max(looked, forget_due(ARGV[3])) })
