-- Reads how many tokens are missing from a bucket, rounded up.
--   KEYS[1]  the bucket
--   ARGV[1]  size of the bucket in tokens
--   ARGV[2]  tokens that flow in
--   ARGV[3]  in so many microseconds
-- Answers {1, missing}, or {0, 0} where there is no bucket.
local refill, length = tonumber(ARGV[2]), tonumber(ARGV[3])
local size = tonumber(ARGV[1]) * length
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
if not state[1] then
  return {0, 0}
end
local tokens = math.min(size, tonumber(state[1]) + math.max(0, now - tonumber(state[2])) * refill)
return {1, math.ceil((size - tokens) / length)}
