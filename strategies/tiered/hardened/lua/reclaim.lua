-- Takes all credit out of an account, so that the database can have it back.
--   KEYS[1]  the account's hash
--   ARGV[1]  for how long no other caller does the same, in milliseconds
-- Answers the credit, or -1 where a draw or another caller of this script is under way.
local account = KEYS[1]
local stored = redis.call('HMGET', account, 'credit', 'draw', 'until', 'returns')
if not stored[1] and not stored[2] then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if stored[2] and now < tonumber(stored[3]) or now < tonumber(stored[4] or 0) then
  return -1
end
redis.call('HSET', account, 'credit', '0', 'returns', string.format('%.0f', now + tonumber(ARGV[1])))
-- The deposit of a draw whose caller has died finds no token.
redis.call('HDEL', account, 'draw', 'until', 'fresh', 'left')
return tonumber(stored[1] or 0)
