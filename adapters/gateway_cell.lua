-- Takes units of a GCRA: one timestamp, the moment at which all would be free again.
--   KEYS[1]  that moment in nanoseconds of the server's clock; gone where all is free
--   ARGV[1]  nanoseconds in which one unit flows in
--   ARGV[2]  units that there may be at once
--   ARGV[3]  units asked for
-- Answers 1 admitted, 0 rejected. Lua counts exactly to 2^53: nanoseconds since 2015 come
-- in steps of 64, and those since 1970 would in steps of 256.
local each, most, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = (time[1] - 1420070400) * 1000000000 + time[2] * 1000
local free = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local after = free + each * asked
if after - each * most > now then
  return 0
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.max(1, math.floor((after - now) / 1000000)))
return 1
