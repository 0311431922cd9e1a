-- Counts a request against one window, if it fits.
--   KEYS[1]  the window's counter
--   ARGV[1]  units asked for
--   ARGV[2]  limit in units
--   ARGV[3]  when the counter expires, in milliseconds since 1970
-- Answers {1, used} admitted, {0, used} rejected, {-1, 0} too late to say.
local counter, units, limit, expires = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- Past its expiry the counter is gone, and counting would start again from zero.
local time = redis.call('TIME')
if tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) >= expires then
  return {-1, 0}
end

local stored = redis.call('GET', counter)
local used = tonumber(stored or 0)
if used + units > limit then
  return {0, used}
end
used = redis.call('INCRBY', counter, ARGV[1])
if not stored then
  redis.call('PEXPIREAT', counter, ARGV[3])
end
return {1, used}
