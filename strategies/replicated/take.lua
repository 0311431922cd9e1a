-- Counts units in a window's counter if they fit beside what is there.
--   KEYS[1]  the counter
--   ARGV[1]  the units
--   ARGV[2]  the limit
--   ARGV[3]  the counter's end in milliseconds since 1970; 0 for none
-- Answers {verdict, units counted}: 1 counted, 0 too many, 2 the window is over.
local asked, limit, ends = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if ends > 0 then
  -- After its end the counter is gone, and a late request would begin a new one.
  local t = redis.call('TIME')
  if tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000) >= ends then
    return {2, 0}
  end
end
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)
if counted + asked > limit then
  return {0, counted}
end
redis.call('INCRBY', KEYS[1], ARGV[1])
if ends > 0 then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return {1, counted + asked}
