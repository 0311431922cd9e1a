-- Enters a request into logs of the last length of time, if it fits into each.
--   KEYS[i]           a log: a sorted set with one member per unit, by microseconds
--   ARGV[1]           units asked for
--   ARGV[2]           the request's number
--   ARGV[3 i]         length of a log in microseconds
--   ARGV[3 i + 1]     its limit in units
--   ARGV[3 i + 2]     its lifetime in milliseconds
-- Answers {1, remaining in the first, 0} admitted, or {0, or -1 if not the first rejects it, remaining in the
-- first, microseconds to wait}.
local units, request = tonumber(ARGV[1]), ARGV[2]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local room
for i, log in ipairs(KEYS) do
  local length, limit = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  redis.call('ZREMRANGEBYSCORE', log, '-inf', now - length)
  local used = redis.call('ZCARD', log)
  room = room or limit - used
  -- A command that a client library repeats has been answered before.
  if redis.call('ZSCORE', log, request .. ':1') then
    return {1, room, 0}
  end
  local excess = used + units - limit
  if excess > 0 then
    local wait = 0
    if excess <= used then
      local last = redis.call('ZRANGE', log, excess - 1, excess - 1, 'WITHSCORES')
      wait = tonumber(last[2]) + length - now
    end
    return {i == 1 and 0 or -1, room, wait}
  end
end
for i, log in ipairs(KEYS) do
  for n = 1, units do
    redis.call('ZADD', log, now, request .. ':' .. n)
  end
  redis.call('PEXPIRE', log, ARGV[3 * i + 2])
end
return {1, room - units, 0}
