-- Gives units back to one tenant, down to zero and no further.
--   KEYS[1]  units used
--   ARGV[1]  units to give back
-- Answers the units that are used afterwards.
local left = tonumber(redis.call('GET', KEYS[1]) or 0) - tonumber(ARGV[1])
if left < 0 then
  left = 0
end
redis.call('SET', KEYS[1], left)
return left
