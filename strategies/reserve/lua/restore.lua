-- Makes a tenant's ledger anew from the database, where there is none.
--   KEYS[1]  ledger, as in hold.lua
--   KEYS[2]  when the reservations end
--   ARGV[1]  limit, ARGV[2] how often it has been set
--   ARGV[3]  units ever stored, ARGV[4] ever deleted
--   ARGV[5]  number of the last change that these contain
-- Answers 1 where it made one, and 0 where not.
if redis.call('HEXISTS', KEYS[1], 'version') == 1 then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'limit', ARGV[1], 'revision', ARGV[2],
  'stored', ARGV[3], 'deleted', ARGV[4], 'version', ARGV[5], 'held', 0)
return 1
