-- Keeps a result, unless the cache has been emptied since it was asked for.
--   KEYS[1]  hash of results
--   KEYS[2]  the generation, which is 0 where there is none
--   ARGV[1]  the query
--   ARGV[2]  its result
--   ARGV[3]  the generation in which it was asked for
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
