-- Gives units back to the window that they were charged to, if it is still there.
--   KEYS[1]  counter of the window
--   ARGV[1]  units
-- Answers 1 where they were given back, 0 where not.
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
if used < tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
