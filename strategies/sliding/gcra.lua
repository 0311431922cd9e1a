-- Moves the moment at which a bucket is full again, if that does not come too late.
--   KEYS[1]  that moment: microseconds, and parts of one
--   ARGV[1]  size of the bucket in units
--   ARGV[2]  units asked for
--   ARGV[3]  units that flow in
--   ARGV[4]  in so many microseconds
-- Answers {1, units left, 0} admitted, {0, units left, microseconds to wait} rejected.
--
-- The key lives for a second more than it is needed.
--
-- A unit takes ARGV[4] / ARGV[3] microseconds to flow in. A microsecond is counted in
-- ARGV[3] parts, so that nothing is rounded.
local refill, length = tonumber(ARGV[3]), tonumber(ARGV[4])
local size = tonumber(ARGV[1]) * length
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- How long from now on until the bucket is full, in parts.
local missing = 0
local stored = redis.call('GET', KEYS[1])
if stored then
  local whole, part = string.match(stored, '^(%d+)/(%d+)$')
  missing = math.max(0, (tonumber(whole) - now) * refill + tonumber(part))
end
local later = missing + tonumber(ARGV[2]) * length
if later > size then
  return {0, math.floor((size - missing) / length), math.ceil((later - size) / refill)}
end
local wait = math.floor(later / refill)
redis.call('SET', KEYS[1], string.format('%.0f/%.0f', now + wait, later - wait * refill), 'PX', math.floor(wait / 1000) + 1000)
return {1, math.floor((size - later) / length), 0}
