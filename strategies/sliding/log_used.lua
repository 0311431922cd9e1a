-- Reads how many units a log holds.
--   KEYS[1]  the log
--   ARGV[1]  length in microseconds
-- Answers {1, units}, or {0, 0} where there is no log.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {0, 0}
end
return {1, redis.call('ZCOUNT', KEYS[1], now - tonumber(ARGV[1]) + 1, '+inf')}
