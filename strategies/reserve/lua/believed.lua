-- Reads what a tenant uses: what is stored, and the reservations that have not
-- ended. Changes nothing.
--   KEYS[1]  ledger, as in hold.lua
--   KEYS[2]  when the reservations end
-- Answers {known, used, lapsing}: known is 1 where there is a ledger and 0 where not,
-- lapsing is what of that is held by reservations that will end.
local ledger = redis.call('HMGET', KEYS[1], 'limit', 'stored', 'deleted', 'held')
if not ledger[1] then
  return {0, 0, 0}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local used = tonumber(ledger[2]) - tonumber(ledger[3]) + tonumber(ledger[4])
local lapsing = 0
for _, request in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf')) do
  local units = tonumber(redis.call('HGET', KEYS[1], request) or 0)
  if tonumber(redis.call('ZSCORE', KEYS[2], request)) > now then
    lapsing = lapsing + units
  else
    used = used - units
  end
end
return {1, used, lapsing}
