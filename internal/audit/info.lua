-- Answers the whole numbers of INFO by name, and by their own names how often commands have run.
local out = {}
for line in string.gmatch(redis.call('INFO', 'all'), '[^\r\n]+') do
  local name, n = string.match(line, '^cmdstat_(.-):calls=(%d+)')
  if not name then
    name, n = string.match(line, '^([^:]+):(%d+)$')
  end
  if name then
    out[#out + 1] = name
    out[#out + 1] = tonumber(n)
  end
end
return out
