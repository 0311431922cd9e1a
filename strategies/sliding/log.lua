-- Enters a request into a log of the last length of time, if it fits.
--   KEYS[1]  the log: a sorted set with one member per unit, by microseconds
--   ARGV[1]  length in microseconds
--   ARGV[2]  limit in units
--   ARGV[3]  units asked for
--   ARGV[4]  the request's number
--   ARGV[5]  lifetime of the log in milliseconds
-- Answers {1, remaining, 0} admitted, {0, remaining, microseconds to wait} rejected.
local log, request = KEYS[1], ARGV[4]
local length, limit, units = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

redis.call('ZREMRANGEBYSCORE', log, '-inf', now - length)
local used = redis.call('ZCARD', log)
-- A command that a client library repeats has been answered before.
if redis.call('ZSCORE', log, request .. ':1') then
  return {1, limit - used, 0}
end
local excess = used + units - limit
if excess > 0 then
  local wait = 0
  if excess <= used then
    local last = redis.call('ZRANGE', log, excess - 1, excess - 1, 'WITHSCORES')
    wait = tonumber(last[2]) + length - now
  end
  return {0, limit - used, wait}
end
for i = 1, units do
  redis.call('ZADD', log, now, request .. ':' .. i)
end
redis.call('PEXPIRE', log, ARGV[5])
return {1, -excess, 0}
