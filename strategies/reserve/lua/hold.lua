-- Reserves units for one request of a tenant, if they fit. A request that holds
-- them already is answered as it was the first time.
--   KEYS[1]  ledger: a hash with the limit, the units ever stored and ever deleted,
--            the units held, each request that holds some, and which of the
--            database's changes it contains
--   KEYS[2]  when the reservations end: a sorted set of requests by milliseconds
--   ARGV[1]  the request
--   ARGV[2]  units asked for
--   ARGV[3]  life of the reservation in milliseconds; 0 for ever
--   ARGV[4]  milliseconds after its end for which a reservation is left alone
-- Answers {1, used, limit, 0} held, {0, used, limit, n} rejected while n
-- reservations have ended, {-1, 0, 0, 0} no such ledger.
local ledger = redis.call('HMGET', KEYS[1], 'limit', 'stored', 'deleted', 'held', ARGV[1])
if not ledger[1] then
  return {-1, 0, 0, 0}
end
local limit = tonumber(ledger[1])
local used = tonumber(ledger[2]) - tonumber(ledger[3]) + tonumber(ledger[4])
if ledger[5] then
  return {1, used, limit, 0}
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local units, life = tonumber(ARGV[2]), tonumber(ARGV[3])
if used + units > limit then
  return {0, used, limit, redis.call('ZCOUNT', KEYS[2], '-inf', now - tonumber(ARGV[4]))}
end
redis.call('HINCRBY', KEYS[1], 'held', ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if life > 0 then
  redis.call('ZADD', KEYS[2], now + life, ARGV[1])
end
return {1, used + units, limit, 0}
