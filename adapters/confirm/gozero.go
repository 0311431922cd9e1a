package confirm

import (
	"fmt"
	"time"

	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zero "github.com/zeromicro/go-zero/core/stores/redis"
)

func zeroLimiter(env Env, rate, burst int, key string) (*limit.TokenLimiter, error) {
	logx.Disable()
	store, err := zero.NewRedis(zero.RedisConf{Host: env.Redis.Options().Addr, Type: zero.NodeType})
	if err != nil {
		return nil, err
	}
	return limit.NewTokenLimiter(rate, burst, store, key), nil
}

// The keys are to live for twice the time in which the bucket fills, in whole seconds:
// for none here. Redis refuses that, and each limiter falls back on a bucket of its own.
var zeroTTL = Confirmation{Name: "go-zero-ttl", Redis: true, Run: func(env Env) (string, bool, error) {
	admitted := 0
	now := time.Unix(2_000_000_000, 0)
	for range 3 { // three processes
		limiter, err := zeroLimiter(env, 100, 40, "go-zero-ttl")
		if err != nil {
			return "", false, err
		}
		for range 40 {
			if limiter.AllowN(now, 1) {
				admitted++
			}
		}
	}
	return fmt.Sprintf("three limiters of one key with a burst of 40 and a rate of 100 admitted %d requests at one moment",
		admitted), admitted > 40, nil
}}

// Time is counted in whole seconds: at the end of a second the bucket is empty, and 10 ms
// later it is full.
var zeroSeconds = Confirmation{Name: "go-zero-seconds", Redis: true, Run: func(env Env) (string, bool, error) {
	limiter, err := zeroLimiter(env, 5, 5, "go-zero-seconds")
	if err != nil {
		return "", false, err
	}
	end := time.Unix(2_000_000_000, 0)
	admitted := 0
	for _, at := range []time.Time{end.Add(-10 * time.Millisecond), end} {
		for range 5 {
			if limiter.AllowN(at, 1) {
				admitted++
			}
		}
	}
	return fmt.Sprintf("with a burst of 5 and a rate of 5 it admitted %d requests in 10 ms", admitted), admitted > 6, nil
}}

// A request of second 1 that Redis gets after those of second 2 sets the bucket's time
// back, and second 2 flows in again.
var zeroLate = Confirmation{Name: "go-zero-late", Redis: true, Run: func(env Env) (string, bool, error) {
	limiter, err := zeroLimiter(env, 5, 5, "go-zero-late")
	if err != nil {
		return "", false, err
	}
	first := time.Unix(2_000_000_000, 0)
	second := first.Add(time.Second)
	admitted := 0
	for range 3 {
		for range 5 {
			if limiter.AllowN(second, 1) {
				admitted++
			}
		}
		if limiter.AllowN(first, 1) {
			admitted++
		}
	}
	return fmt.Sprintf("with a burst of 5 and a rate of 5 it admitted %d requests of one second, among which late "+
		"ones came", admitted), admitted > 6, nil
}}
