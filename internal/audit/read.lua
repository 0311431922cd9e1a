-- Reads counters by EVAL_RO, in which Redis refuses to write.
--   KEYS     of subjects
--   ARGV[1]  how many of the fields that follow are added up; the others are subtracted
--   ARGV[2]  and following: fields of a hash; none where a key has a number
-- Answers two each: how many milliseconds the key lives, and the units, or nil where it is missing or of another type.
local out = {}
for _, key in ipairs(KEYS) do
  local units, kind = false, redis.call('TYPE', key).ok
  if kind == 'string' and #ARGV == 1 then
    units = tonumber(redis.call('GET', key)) or false
  elseif kind == 'hash' and #ARGV > 1 then
    for i, text in ipairs(redis.call('HMGET', key, unpack(ARGV, 2))) do
      local n = tonumber(text)
      if n then
        units = (units or 0) + (i <= tonumber(ARGV[1]) and n or -n)
      end
    end
  end
  out[#out + 1] = redis.call('PTTL', key)
  out[#out + 1] = units
end
return out
