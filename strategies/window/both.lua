-- Charges a request to two counters, or to neither. The one that rejects keeps the attempt, as without the other.
--   KEYS[1], KEYS[2]  the counters
--   ARGV[1]           units asked for
--   ARGV[2], ARGV[4]  their limits in units
--   ARGV[3], ARGV[5]  their lifetimes in seconds
-- Answers {number of the counter that rejects, or 0, count of the first}.
local first
for i = 1, 2 do
  local count = redis.call('INCRBY', KEYS[i], ARGV[1])
  redis.call('EXPIRE', KEYS[i], ARGV[2 * i + 1])
  first = first or count
  if count > tonumber(ARGV[2 * i]) then
    if i == 2 then
      first = redis.call('DECRBY', KEYS[1], ARGV[1])
    end
    return {i, first}
  end
end
return {0, first}
