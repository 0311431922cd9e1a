-- Adds what a draw got to the credit of an account, and takes units from it. The
-- token is used up by that: a repeated deposit, one that comes too late, and one
-- for a hash that was lost in between add nothing.
--   KEYS[1]  the account's hash
--   ARGV[1]  token of the draw
--   ARGV[2]  units drawn
--   ARGV[3]  1 if the database has nothing left
--   ARGV[4]  units asked for; 0 only ends the draw
--   ARGV[5]  how long having nothing left is believed, in milliseconds
--   ARGV[6]  1 if the units may be given back later
--   ARGV[7]  limit of the caller's policy
--   ARGV[8]  units that the database has left
-- Answers {status, credit, left, 0}. The statuses are
--   0  rejected
--   1  admitted
--   4  the token is none, or no longer
--   5  ask again
local account, units = KEYS[1], tonumber(ARGV[4])
local stored = redis.call('HMGET', account, 'credit', 'draw', 'fresh')
if stored[2] ~= ARGV[1] then
  return {4, 0, -1, 0}
end
-- Before fields go: a hash without any would be gone, and its expiry with it.
local credit = redis.call('HINCRBY', account, 'credit', ARGV[2])
redis.call('HDEL', account, 'draw', 'until', 'fresh')

local left = -1
if not stored[3] and units > 0 then
  left = tonumber(ARGV[8])
  redis.call('HSET', account, 'left', ARGV[8])
end
local dry = ARGV[3] == '1' and not stored[3]
if dry then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  redis.call('HSET', account, 'dry', string.format('%.0f', now + tonumber(ARGV[5])), 'limit', ARGV[7])
end

if units == 0 then
  return {5, credit, left, 0}
end
if credit >= units then
  credit = redis.call('HINCRBY', account, 'credit', '-' .. ARGV[4])
  if ARGV[6] == '1' then
    redis.call('HSET', account, 'settles', '1')
  end
  return {1, credit, left, 0}
end
if dry then
  return {0, credit, left, 0}
end
return {5, credit, left, 0}
