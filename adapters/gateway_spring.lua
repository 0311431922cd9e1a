-- Takes tokens out of a bucket that is refilled once a second.
--   KEYS[1]  the bucket: its tokens, and the second of the server's clock in which it had them
--   ARGV[1]  tokens that flow in per second
--   ARGV[2]  size of the bucket in tokens
--   ARGV[3]  tokens asked for
-- Answers 1 admitted, 0 rejected. A bucket that would live for less than a second is not
-- kept.
local rate, size, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local second = tonumber(redis.call('TIME')[1])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'timestamp')
local tokens, at = tonumber(state[1] or size), tonumber(state[2] or 0)
tokens = math.min(size, tokens + math.max(0, second - at) * rate)
local admitted = 0
if tokens >= asked then
  tokens, admitted = tokens - asked, 1
end
local seconds = math.floor(2 * size / rate)
if seconds > 0 then
  redis.call('HSET', KEYS[1], 'tokens', tokens, 'timestamp', second)
  redis.call('EXPIRE', KEYS[1], seconds)
end
return admitted
