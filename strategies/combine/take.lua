-- Decides on requests one after the other, each by what the window's counter holds by then.
--   KEYS[1]  the window's counter
--   ARGV[1]  limit in units
--   ARGV[2]  when the counter expires, in milliseconds since 1970
--   ARGV     then the units of each request, in the order of arrival
-- If an answer is remembered:
--   KEYS[2]  what was answered last
--   ARGV[3]  the number of this batch
--   ARGV[4]  how long its answer is remembered, in milliseconds; the units follow
-- Answers a number for each request, with blanks between them: the units used with it if it
-- is admitted, -1 minus the units used if it is rejected. Answers "late" if the counter is
-- gone by Redis' clock. A batch with the number of the last one gets the last answer again.
local counter, memory = KEYS[1], KEYS[2]
local limit, expires = tonumber(ARGV[1]), tonumber(ARGV[2])
local first, number = 3, nil

if memory then
  first, number = 5, ARGV[3]
  local last = redis.call('GET', memory)
  if last and string.sub(last, 1, #number + 1) == number .. ' ' then
    return string.sub(last, #number + 2)
  end
end

-- Past its expiry the counter is gone, and counting would start again from zero.
local time = redis.call('TIME')
if tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) >= expires then
  return 'late'
end

local stored = redis.call('GET', counter)
local before = tonumber(stored or 0)
local used, answers = before, {}
for i = first, #ARGV do
  local units = tonumber(ARGV[i])
  if used + units <= limit then
    used = used + units
    answers[#answers + 1] = string.format('%d', used)
  else
    answers[#answers + 1] = string.format('%d', -1 - used)
  end
end
if used > before then
  redis.call('INCRBY', counter, string.format('%d', used - before))
  if not stored then
    redis.call('PEXPIREAT', counter, ARGV[2])
  end
end

local answer = table.concat(answers, ' ')
if memory then
  redis.call('SET', memory, number .. ' ' .. answer, 'PX', ARGV[4])
end
return answer
