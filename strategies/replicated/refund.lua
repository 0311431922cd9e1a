-- Takes units off a counter, down to 0 and no further. A counter that has expired
-- stays gone.
--   KEYS[1]  the counter
--   ARGV[1]  the units
-- Answers {1, units counted}.
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)
local back = math.min(counted, tonumber(ARGV[1]))
if back > 0 then
  redis.call('DECRBY', KEYS[1], back)
end
return {1, counted - back}
