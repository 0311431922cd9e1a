-- Settles a block, and charges a request with a new block for its instance.
--   KEYS[1]  a window's hash: "used" are the units of requests and blocks, and "NUMBER:INSTANCE" is
--            an open block: its units and its deadline
--   ARGV[1]  units asked for; 0 only settles, and draws a block
--   ARGV[2]  limit in units
--   ARGV[3]  most units of a block, the request's included; 0 for none
--   ARGV[4]  share of what is left that a block may be
--   ARGV[5]  instances
--   ARGV[6]  time to live of a block, in milliseconds
--   ARGV[7]  when the hash expires, in milliseconds since 1970
--   ARGV[8]  1 if the units of blocks are free after their deadline
--   ARGV[9]  name of the instance, which no other and no earlier life of it has
--   ARGV[10] number of the block that is settled; 0 for none
--   ARGV[11] units of it that were not spent
--   ARGV[12] number of the new block, which the instance has given to no other
-- Answers {verdict, units left, units of the new block}: 1 admitted, 0 rejected, -1 the window is
-- over, -2 rejected while no block is open, so that no unit can come back in this window.
local key, units, limit = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if now >= tonumber(ARGV[7]) then
  return {-1, 0, 0} -- the hash is gone, and a late request would begin a new one
end

-- A block is settled once: without its field it has been settled, or its units are free.
if ARGV[10] ~= '0' and redis.call('HDEL', key, ARGV[10] .. ':' .. ARGV[9]) == 1 and ARGV[11] ~= '0' then
  redis.call('HINCRBY', key, 'used', '-' .. ARGV[11])
end
if ARGV[8] == '1' then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local open, deadline = string.match(all[i + 1], '^(%d+) (%d+)$')
    if open and tonumber(deadline) <= now then
      redis.call('HDEL', key, all[i])
      redis.call('HINCRBY', key, 'used', '-' .. open)
    end
  end
end

local stored = redis.call('HGET', key, 'used')
local left = limit - tonumber(stored or 0)
local most, block = tonumber(ARGV[3]), ARGV[12] .. ':' .. ARGV[9]
local drawn = most > 0 and redis.call('HGET', key, block)
if drawn then
  return {1, left, tonumber(string.match(drawn, '^%d+'))} -- the request is here again, and was charged
end
if units > left or units + most == 0 then
  return {redis.call('HLEN', key) > 1 and 0 or -2, left, 0}
end
local extra = math.min(most, math.floor(left * tonumber(ARGV[4]) / tonumber(ARGV[5]))) - units
if extra > 0 then
  redis.call('HSET', key, block, string.format('%.0f %.0f', extra, now + tonumber(ARGV[6])))
else
  extra = 0
end
redis.call('HINCRBY', key, 'used', string.format('%.0f', units + extra))
if not stored then
  redis.call('PEXPIREAT', key, ARGV[7])
end
return {1, left - units - extra, extra}
