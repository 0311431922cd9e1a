-- Makes an account's next request ask the database, which has got units back.
--   KEYS[1]  the account's hash
-- Answers for how many milliseconds instances may still reject by themselves.
local account = KEYS[1]
local stored = redis.call('HMGET', account, 'draw', 'leased')
redis.call('HDEL', account, 'dry', 'left')
if stored[1] then
  -- A draw that is under way may have asked before the units came back.
  redis.call('HSET', account, 'fresh', '1')
end
if not stored[2] then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max(0, tonumber(stored[2]) - now)
