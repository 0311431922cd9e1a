// Package slidinglog is a limiter as a team might have it: a sliding window that
// keeps the time of every admitted request in a sorted set of Redis. It knows
// nothing of quotabench but what register.go says.
package slidinglog

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limiter admits at most Limit requests of a key in any Window.
type Limiter struct {
	Client redis.Scripter
	Limit  int64
	Window time.Duration
	// Now is the clock: time.Now in production.
	Now func() time.Time
}

// script forgets what has left the window, and admits if there is room. Members
// of the set are unique: at one moment the set only grows.
var script = redis.NewScript(`
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
local n = redis.call('ZCARD', KEYS[1])
if n >= limit then
	return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[1] .. ':' .. n)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return 1
`)

// Allow counts a request of the key and reports whether it may pass.
func (l *Limiter) Allow(ctx context.Context, key string) (bool, error) {
	n, err := script.Run(ctx, l.Client, []string{key}, l.Now().UnixMicro(), l.Window.Microseconds(), l.Limit).Int64()
	return n == 1, err
}
