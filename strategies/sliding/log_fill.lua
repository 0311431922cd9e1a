-- Begins a log with units that were used already.
--   KEYS[1]  the log
--   ARGV[1]  units
--   ARGV[2]  lifetime of the log in milliseconds
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
redis.call('DEL', KEYS[1])
for i = 1, tonumber(ARGV[1]) do
  redis.call('ZADD', KEYS[1], now, 'initial:' .. i)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
