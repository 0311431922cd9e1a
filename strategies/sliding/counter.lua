-- Counts a request in a numbered window, if it fits beside what the window before
-- weighs.
--   KEYS[1]  counter of the window
--   KEYS[2]  counter of the window before
--   ARGV[1]  limit in units
--   ARGV[2]  units asked for
--   ARGV[3]  what is left of the window, in microseconds
--   ARGV[4]  length of the window, in microseconds
--   ARGV[5]  lifetime of the counter in milliseconds
-- Answers {1, remaining, 0} admitted, {0, remaining, microseconds to wait} rejected.
local limit, units, left, length = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local before = tonumber(redis.call('GET', KEYS[2]) or 0)

local free = math.floor(limit - used - before * left / length)
if units > free then
  -- The window before weighs less as time passes.
  local wait = left
  if before > 0 and limit - used >= units then
    wait = math.ceil(left - (limit - used - units) * length / before)
  end
  return {0, free, wait}
end
redis.call('INCRBY', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {1, free - units, 0}
