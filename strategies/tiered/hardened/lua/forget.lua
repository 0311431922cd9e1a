-- Drops an account's credit and draws: the database has been set anew.
--   KEYS[1]  the account's hash
-- Answers for how many milliseconds instances may still reject by themselves.
local leased = redis.call('HGET', KEYS[1], 'leased')
redis.call('DEL', KEYS[1])
if not leased then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max(0, tonumber(leased) - now)
