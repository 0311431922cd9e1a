-- Takes changes of the database into a tenant's ledger, each of them once. The
-- database numbers a tenant's changes. The ledger contains all up to its version,
-- and beyond that those that have a field of their own, so that changes may arrive
-- late, again and in any order.
--   KEYS[1]  ledger, as in hold.lua
--   KEYS[2]  when the reservations end
--   ARGV[1]  limit, ARGV[2] how often it has been set; 0 where it is not told
--   ARGV[3]  and following, four each: a request, the size of its file, the number
--            of the change that stored it, and of the one that deleted it; 0 for none
-- What a request holds ends in any case: its file counts from here on, or there
-- will never be one.
-- Answers 1 where that changed anything, and 0 where not. Without a ledger it
-- changes nothing: one that is restored contains all that the database has.
local ledger = redis.call('HMGET', KEYS[1], 'version', 'revision')
if not ledger[1] then
  return 0
end
local version, changed = tonumber(ledger[1]), 0

local function once(number, total, size)
  if tonumber(number) > version and redis.call('HSETNX', KEYS[1], 'change-' .. number, 1) == 1 then
    redis.call('HINCRBY', KEYS[1], total, size)
    changed = 1
  end
end

for i = 3, #ARGV, 4 do
  local units = redis.call('HGET', KEYS[1], ARGV[i])
  redis.call('ZREM', KEYS[2], ARGV[i])
  if units then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('HINCRBY', KEYS[1], 'held', '-' .. units)
    changed = 1
  end
  once(ARGV[i + 2], 'stored', ARGV[i + 1])
  once(ARGV[i + 3], 'deleted', ARGV[i + 1])
end

local last = version
while redis.call('HDEL', KEYS[1], 'change-' .. string.format('%.0f', last + 1)) == 1 do
  last = last + 1
end
if last > version then
  redis.call('HSET', KEYS[1], 'version', string.format('%.0f', last))
end
if tonumber(ARGV[2]) > tonumber(ledger[2]) then
  redis.call('HSET', KEYS[1], 'limit', ARGV[1], 'revision', ARGV[2])
  changed = 1
end
return changed
