-- Reads how many units are missing from a bucket, rounded up.
--   KEYS[1]  the moment at which it is full again
--   ARGV[1]  units that flow in
--   ARGV[2]  in so many microseconds
-- Answers {1, missing}, or {0, 0} where nothing is stored.
local refill, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local stored = redis.call('GET', KEYS[1])
if not stored then
  return {0, 0}
end
local whole, part = string.match(stored, '^(%d+)/(%d+)$')
return {1, math.ceil(math.max(0, (tonumber(whole) - now) * refill + tonumber(part)) / length)}
