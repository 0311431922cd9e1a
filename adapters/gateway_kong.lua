-- Counts a request in the window of the key, admitted or not.
--   KEYS[1]  counter of a subject and window
--   ARGV[1]  lifetime of the counter in seconds, from its first request on
-- Answers how many requests were counted before this one.
local counted = redis.call('INCR', KEYS[1])
if counted == 1 then
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return counted - 1
