-- Adds units to a window's count, once for each number.
--   KEYS[1]  a window's hash: "used" are the units that Redis knows of, and "last:INSTANCE" is the
--            number of the last push of an instance
--   ARGV[1]  units; 0 only reads
--   ARGV[2]  limit in units, above which nothing is added; -1 adds in any case
--   ARGV[3]  when the hash expires, in milliseconds since 1970
--   ARGV[4]  name of the instance
--   ARGV[5]  number of the push, which is larger than those before; 0 for none
-- Answers {verdict, units used}: 1 added, now or before by the same number; 0 above the limit;
-- -1 the window is over.
local key, units, limit, number = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])
local time = redis.call('TIME')
if tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) >= tonumber(ARGV[3]) then
  return {-1, 0} -- the hash is gone, and counting would start again from zero
end

local stored = redis.call('HGET', key, 'used')
local used = tonumber(stored or 0)
if limit >= 0 and used + units > limit then
  return {0, used}
end
if number > 0 then
  local last = 'last:' .. ARGV[4]
  if tonumber(redis.call('HGET', key, last) or 0) >= number then
    return {1, used}
  end
  redis.call('HSET', key, last, ARGV[5])
end
if units > 0 then
  used = redis.call('HINCRBY', key, 'used', ARGV[1])
  if not stored then
    redis.call('PEXPIREAT', key, ARGV[3])
  end
end
return {1, used}
