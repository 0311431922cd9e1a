-- Takes units from the credit of one account and window.
--   KEYS[1]  the account's hash
--   ARGV[1]  units asked for
--   ARGV[2]  token of a draw, should one be needed
--   ARGV[3]  how long that draw keeps others from drawing, in milliseconds
--   ARGV[4]  when the hash expires, in milliseconds since 1970; 0 is never
--   ARGV[5]  1 if the units may be given back later
--   ARGV[6]  how long the caller may remember a rejection, in milliseconds; 0 is not
--   ARGV[7]  limit of the caller's policy
-- Answers {status, credit, left, ms}: credit is what the hash has, left what the
-- database had beside it after the last draw, or -1. The statuses are
--   0  rejected; the caller may reject alike for so many ms
--   1  admitted
--   2  draw from the database, then deposit by this token
--   3  another draw is under way, for at most so many ms
local account, units = KEYS[1], tonumber(ARGV[1])
local stored = redis.call('HMGET', account, 'credit', 'dry', 'draw', 'until', 'settles', 'left', 'limit', 'leased')
local credit, left = tonumber(stored[1] or 0), tonumber(stored[6] or -1)

if credit >= units then
  redis.call('HINCRBY', account, 'credit', '-' .. ARGV[1])
  if ARGV[5] == '1' and not stored[5] then
    redis.call('HSET', account, 'settles', '1')
  end
  return {1, credit - units, left, 0}
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- The database had nothing left, and nobody has told of units that came back.
if stored[2] and now < tonumber(stored[2]) and stored[7] == ARGV[7] then
  local ms = 0
  if not stored[5] then
    ms = math.min(tonumber(ARGV[6]), tonumber(stored[2]) - now)
    if ms > 0 and now + ms > tonumber(stored[8] or 0) then
      redis.call('HSET', account, 'leased', string.format('%.0f', now + ms))
    end
  end
  return {0, credit, left, ms}
end

if stored[3] and stored[3] ~= ARGV[2] and now < tonumber(stored[4]) then
  return {3, credit, left, tonumber(stored[4]) - now}
end
redis.call('HSET', account, 'draw', ARGV[2], 'until', string.format('%.0f', now + tonumber(ARGV[3])))
redis.call('HDEL', account, 'fresh')
if ARGV[4] ~= '0' then
  redis.call('PEXPIREAT', account, ARGV[4])
end
return {2, credit, left, 0}
