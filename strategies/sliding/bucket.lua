-- Takes tokens out of a bucket, if it has them.
--   KEYS[1]  the bucket: tokens and the moment at which it had them, in microseconds
--   ARGV[1]  size of the bucket in tokens
--   ARGV[2]  tokens asked for
--   ARGV[3]  tokens that flow in
--   ARGV[4]  in so many microseconds
--   ARGV[5]  lifetime of the bucket in milliseconds
-- Answers {1, tokens left, 0} admitted, {0, tokens left, microseconds to wait} rejected.
--
-- A token is counted in as many parts as there are microseconds in ARGV[4]: then as
-- many parts flow in every microsecond as ARGV[3] says, and nothing is rounded.
local refill, length = tonumber(ARGV[3]), tonumber(ARGV[4])
local size, asked = tonumber(ARGV[1]) * length, tonumber(ARGV[2]) * length
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = size
if state[1] then
  tokens = tonumber(state[1])
  local at = tonumber(state[2])
  if now > at then
    tokens = math.min(size, tokens + (now - at) * refill)
  else
    now = at
  end
end
if asked > tokens then
  return {0, math.floor(tokens / length), math.ceil((asked - tokens) / refill)}
end
tokens = tokens - asked
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {1, math.floor(tokens / length), 0}
