-- Lists the reservations of a tenant that have ended.
--   KEYS[1]  when they end, as in hold.lua
--   ARGV[1]  milliseconds after its end for which a reservation is left alone
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]))
