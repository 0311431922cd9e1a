package planted

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

const logScript = `local now, from = tonumber(ARGV[3]), tonumber(ARGV[3]) - ARGV[2] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', from)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
local id = redis.call('INCR', KEYS[1] .. ':id')
redis.call('ZADD', KEYS[1], now, id)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1] .. ':id', ARGV[2] * 2)
return 1`

func logs() []Limiter {
	return []Limiter{
		limiter("log", "", quota.Rolling, lua(plain, logScript)),
		limiter("log-member", "two requests of one moment are one member", quota.Rolling, lua(plain, `local now = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2] * 1000)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, now)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)),
		limiter("log-server-time", "", quota.Rolling, lua(plain, `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2] * 1000)
local n = redis.call('ZCARD', KEYS[1])
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, string.format('%.0f:%d', now, n))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`), undeclared),
		limiter("log-list-server-time", "", quota.Rolling, lua(plain, `local t = redis.call('TIME')
local now, oldest = t[1] * 1000000 + t[2], redis.call('LINDEX', KEYS[1], ARGV[1] - 1)
if oldest and now - oldest < ARGV[2] * 1000 then return 0 end
redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], 0, ARGV[1] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`), undeclared),
		limiter("log-process-time", "it takes the time from its process, whose clock is ahead of that of another one",
			quota.Rolling, lua(plain, logScript), undeclared),
		limiter("log-list", "", quota.Rolling, lua(plain, `local now, oldest = tonumber(ARGV[3]), redis.call('LINDEX', KEYS[1], ARGV[1] - 1)
if oldest and now - oldest < ARGV[2] * 1000 then return 0 end
redis.call('LPUSH', KEYS[1], ARGV[3])
redis.call('LTRIM', KEYS[1], 0, ARGV[1] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)),
		limiter("log-seconds", "its scores are whole seconds, so that entries are forgotten up to a second early", quota.Rolling, lua(plain, `local now = math.floor(ARGV[3] / 1000000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - math.floor(ARGV[2] / 1000))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, redis.call('INCR', KEYS[1] .. ':id'))
redis.call('PEXPIRE', KEYS[1], ARGV[2] + 1000)
redis.call('PEXPIRE', KEYS[1] .. ':id', ARGV[2] * 2 + 1000)
return 1`)),
		limiter("log-transaction", "", quota.Rolling, func(ctx context.Context, s *state, key string) (ok bool, err error) {
			for range 20 {
				err = s.rdb.Watch(ctx, func(tx *redis.Tx) error {
					now := s.now().UnixMicro()
					from := strconv.FormatInt(now-s.length().Microseconds(), 10)
					n, err := tx.ZCount(ctx, key, "("+from, "+inf").Result()
					ok = err == nil && n < s.policy.Limit
					if !ok {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(pipeliner redis.Pipeliner) error {
						pipeliner.ZRemRangeByScore(ctx, key, "-inf", from)
						pipeliner.ZAdd(ctx, key, redis.Z{Score: float64(now), Member: s.env.Rand.Uint64()})
						pipeliner.PExpire(ctx, key, s.length())
						return nil
					})
					return err
				}, key)
				if !errors.Is(err, redis.TxFailedErr) {
					break
				}
			}
			return ok && err == nil, err
		}),
		limiter("log-count-then-add", "it counts, and then adds", quota.Rolling,
			func(ctx context.Context, s *state, key string) (bool, error) {
				now := s.now().UnixMicro()
				n, err := s.rdb.ZCount(ctx, key, "("+strconv.FormatInt(now-s.length().Microseconds(), 10), "+inf").Result()
				if err != nil || n >= s.policy.Limit {
					return false, err
				}
				pipeliner := s.rdb.TxPipeline()
				pipeliner.ZAdd(ctx, key, redis.Z{Score: float64(now), Member: s.env.Rand.Uint64()})
				pipeliner.PExpire(ctx, key, s.length())
				_, err = pipeliner.Exec(ctx)
				return err == nil, err
			}),
		limiter("log-rejected-too", "rejected requests are in the log, and keep others out", quota.Rolling, lua(plain, `local now = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2] * 1000)
redis.call('ZADD', KEYS[1], now, redis.call('INCR', KEYS[1] .. ':id'))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1] .. ':id', ARGV[2] * 2)
if redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[1]) then return 0 end
return 1`)),
	}
}

// weighted counts the window before by the share of it that is left; the text is what it comes to.
func weighted(share string) do {
	script := redis.NewScript(`local limit, length, past = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local before, n = tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(redis.call('GET', KEYS[1]) or '0')
if n + 1 + ` + share + ` > limit then return 0 end
redis.call('SET', KEYS[1], n + 1, 'PX', math.ceil(length / 500))
return 1`)
	return func(ctx context.Context, s *state, key string) (bool, error) {
		now := s.now().UnixMicro()
		length := s.length().Microseconds()
		n := now / length
		keys := []string{key + ":" + strconv.FormatInt(n, 10), key + ":" + strconv.FormatInt(n-1, 10)}
		admitted, err := script.Run(ctx, s.rdb, keys, s.policy.Limit, length, now%length).Int64()
		return admitted == 1, err
	}
}

func weigheds() []Limiter {
	approximate := func(meta *strategies.Meta) { meta.Guarantee = []quota.Clause{quota.Weighted(), quota.MayReject()} }
	return []Limiter{
		limiter("weighted", "", quota.Rolling, weighted("before * (length - past) / length"), approximate),
		limiter("weighted-whole", "the weight of the window before is cut to a whole number", quota.Rolling,
			weighted("math.floor(before * (length - past) / length)"), approximate),
	}
}

// bucketScript counts in parts of a unit, as many as its rate has µs, so that nothing is rounded.
const bucketScript = `local size, per, units, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local b = redis.call('HMGET', KEYS[1], 'parts', 'at')
local parts, at = tonumber(b[1]) or size * per, tonumber(b[2]) or now
if now > at then parts = math.min(size * per, parts + (now - at) * units) at = now end
local ok = 0
if parts >= per then parts = parts - per ok = 1 end
redis.call('HSET', KEYS[1], 'parts', string.format('%.0f', parts), 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], math.ceil(size * per / units / 1000) + 1)
return ok`

// units is a bucket of whole units; the text is how many have flowed in, and what the moment becomes.
func units(flow string) string {
	return `local size, per, units, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local b = redis.call('HMGET', KEYS[1], 'left', 'at')
local left, at = tonumber(b[1]) or size, tonumber(b[2]) or now
` + flow + `
local ok = 0
if left >= 1 then left = left - 1 ok = 1 end
redis.call('HSET', KEYS[1], 'left', left, 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], math.ceil(size * per / units / 1000) * 3 + 1)
return ok`
}

const gcraScript = `local size, per, units, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]) * tonumber(ARGV[3])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
if tat + per - now > size * per then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', tat + per), 'PX', math.ceil(size * per / units / 1000) + 1)
return 1`

func buckets() []Limiter {
	return []Limiter{
		limiter("bucket", "", quota.Bucket, bucket(bucketScript)),
		limiter("bucket-units", "", quota.Bucket, bucket(units(`local n = math.floor((now - at) * units / per)
if n > 0 then left = left + n at = at + math.ceil(n * per / units) end
if left >= size then left = size at = math.max(at, now) end`)), mayReject),
		limiter("bucket-rounds-up", "a part of a unit is admitted as a whole one", quota.Bucket, bucket(units(`local n = math.ceil((now - at) * units / per)
left = math.min(size, left + n) at = now`))),
		limiter("bucket-starves", "a request that comes before a unit has flowed in puts the clock back, and the bucket stays empty", quota.Bucket, bucket(units(`local n = math.floor((now - at) * units / per)
left = math.min(size, left + n) at = now`))),
		limiter("bucket-no-cap", "units flow in for as long as nobody asks, beyond the bucket's size", quota.Bucket, bucket(units(`local n = math.floor((now - at) * units / per)
left = left + n at = at + math.floor(n * per / units)`))),
		limiter("bucket-float", "", quota.Bucket, bucket(`local size, per, units, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local b = redis.call('HMGET', KEYS[1], 'left', 'at')
local left, at = tonumber(b[1]) or size, tonumber(b[2]) or now
left, at = math.min(size, left + math.max(0, now - at) * units / per), math.max(at, now)
local ok = 0
if left + 1e-9 >= 1 then left = left - 1 ok = 1 end
redis.call('HSET', KEYS[1], 'left', string.format('%.17g', left), 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], math.ceil(size * per / units / 1000) + 1)
return ok`)),
		limiter("bucket-watch", "", quota.Bucket, func(ctx context.Context, s *state, key string) (ok bool, err error) {
			window := s.policy.Window
			per := window.RealLength().Microseconds()
			now := s.now().UnixMicro()
			for range 20 {
				err = s.rdb.Watch(ctx, func(tx *redis.Tx) error {
					b := struct {
						Parts int64 `redis:"parts"`
						At    int64 `redis:"at"`
					}{s.policy.Limit * per, now}
					if err := tx.HGetAll(ctx, key).Scan(&b); err != nil {
						return err
					}
					parts := min(s.policy.Limit*per, b.Parts+max(0, now-b.At)*window.Refill)
					at := max(b.At, now)
					ok = parts >= per
					if !ok {
						return nil
					}
					_, err := tx.TxPipelined(ctx, func(pipeliner redis.Pipeliner) error {
						pipeliner.HSet(ctx, key, "parts", parts-per, "at", at)
						pipeliner.PExpire(ctx, key, time.Duration(s.policy.Limit*per/window.Refill+1000)*time.Microsecond)
						return nil
					})
					return err
				}, key)
				if !errors.Is(err, redis.TxFailedErr) {
					break
				}
			}
			return ok && err == nil, err
		}),
		limiter("gcra", "", quota.Bucket, bucket(gcraScript)),
		limiter("gcra-server-time", "", quota.Bucket, bucket(`local t = redis.call('TIME')
local size, per, now = tonumber(ARGV[1]), ARGV[2] / ARGV[3], (t[1] - 1420070400) * 1000000 + t[2]
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
if tat + per - now > size * per + 0.001 then return 0 end
redis.call('SET', KEYS[1], string.format('%.17g', tat + per), 'PX', math.ceil(size * per / 1000) + 1)
return 1`)),
		limiter("gcra-seconds", "it cuts the interval between units to whole seconds", quota.Bucket, bucket(`local size, now = tonumber(ARGV[1]), tonumber(ARGV[4])
local interval = math.floor(ARGV[2] / ARGV[3] / 1000000) * 1000000
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
if tat + interval - now > size * interval then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', tat + interval), 'PX', math.ceil(size * ARGV[2] / ARGV[3] / 1000) + 1)
return 1`)),
		limiter("gcra-get-set", "it reads the moment, and writes the next one", quota.Bucket,
			func(ctx context.Context, s *state, key string) (bool, error) {
				window := s.policy.Window
				per := window.RealLength().Microseconds()
				now := s.now().UnixMicro() * window.Refill
				tat, err := number(ctx, s.rdb, key)
				tat = max(tat, now)
				if err != nil || tat+per-now > s.policy.Limit*per {
					return false, err
				}
				return true, s.rdb.Set(ctx, key, tat+per,
					time.Duration(s.policy.Limit*per/window.Refill+1000)*time.Microsecond).Err()
			}),
	}
}

// clocks take the time from Redis.
func clocks() []Limiter {
	return []Limiter{
		limiter("server-time", "", quota.FirstRequest, lua(plain, `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local b = redis.call('HMGET', KEYS[1], 'n', 'began')
local n, began = tonumber(b[1]) or 0, tonumber(b[2]) or 0
if now - began >= ARGV[2] * 1000 then n, began = 0, now end
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'n', n + 1, 'began', string.format('%.0f', began))
redis.call('PEXPIRE', KEYS[1], ARGV[2] * 2)
return 1`)),
		limiter("server-time-fraction", "it stores the moment in ms with a fraction, which its own pattern does not match", quota.FirstRequest, lua(plain, `local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local n, began = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)@(%d+)$')
n, began = tonumber(n) or 0, tonumber(began) or now
if now - began >= tonumber(ARGV[2]) then n, began = 0, now end
if n >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], (n + 1) .. '@' .. began, 'PX', ARGV[2])
return 1`)),
	}
}
