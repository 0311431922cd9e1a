-- Takes tokens out of a bucket that is refilled by its callers' clocks, in whole seconds.
--   KEYS[1]  tokens
--   KEYS[2]  the second in which they were counted
--   ARGV[1]  tokens that flow in per second
--   ARGV[2]  size of the bucket in tokens
--   ARGV[3]  the caller's second
--   ARGV[4]  tokens asked for
-- Answers 1 admitted, 0 rejected, and fails where the keys would live for less than a
-- second.
local rate, size, second, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local tokens = tonumber(redis.call('GET', KEYS[1]) or size)
local since = math.max(0, second - tonumber(redis.call('GET', KEYS[2]) or 0))
tokens = math.min(size, tokens + since * rate)
local admitted = 0
if tokens >= asked then
  tokens, admitted = tokens - asked, 1
end
local lives = math.floor(2 * size / rate)
redis.call('SETEX', KEYS[1], lives, tokens)
redis.call('SETEX', KEYS[2], lives, second)
return admitted
