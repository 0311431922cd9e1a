-- Adds what was counted elsewhere to the counter of a window.
--   KEYS[1]  counter of a subject and window
--   ARGV[1]  what is added
--   ARGV[2]  lifetime in seconds of a counter that is not there yet
local there = redis.call('EXISTS', KEYS[1])
redis.call('INCRBY', KEYS[1], ARGV[1])
if there == 0 then
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
return 0
