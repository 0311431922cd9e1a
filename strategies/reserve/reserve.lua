-- Reserves units for one tenant, if they fit.
--   KEYS[1]  units used
--   KEYS[2]  limit in units; a tenant without one may use nothing
--   ARGV[1]  units asked for
-- Answers {1, used, limit} where they were reserved and {-1, used, limit} where not.
local limit = tonumber(redis.call('GET', KEYS[2]) or 0)
local used = tonumber(redis.call('GET', KEYS[1]) or 0)

if used + tonumber(ARGV[1]) <= limit then
  return {1, redis.call('INCRBY', KEYS[1], ARGV[1]), limit}
end
return {-1, used, limit}
