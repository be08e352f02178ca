#!lua flags=no-writes,allow-oom
-- The newest sessions of a tenant's list, of some place on.
-- ARGV: 1 unused, 2 tenant's name, 3 '' for the beginning, or the place of the last session before: time of its creation in
--       13 digits, and its name, 4 how many at most
-- Returns: 'done' with the places of each
--- @include arguments
local from = ARGV[3] == '' and '(' .. ARGV[2] .. '\255' or '(' .. ARGV[2] .. ARGV[3]
local members = redis.call('ZREVRANGEBYLEX', lists, from, '[' .. ARGV[2], 'LIMIT', 0, ARGV[4])
for at, member in ipairs(members) do
  members[at] = string.sub(member, 23)
end
return { 0, 'done', now, members }
