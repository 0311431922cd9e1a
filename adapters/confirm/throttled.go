package confirm

import (
	"context"
	"fmt"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
)

// A rate of 31 per minute without a burst is one request in 1.935 s. The key that holds
// the state lives for one whole second.
var throttledTTL = Confirmation{Name: "throttled-ttl", Redis: true, Run: func(env Env) (string, bool, error) {
	store, err := goredisstore.NewCtx(env.Redis, "throttled-ttl:")
	if err != nil {
		return "", false, err
	}
	gcraRateLimiterCtx, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(31)})
	if err != nil {
		return "", false, err
	}
	const step, seconds = 50 * time.Millisecond, 60
	admitted := 0
	for range seconds * int(time.Second/step) {
		limited, _, err := gcraRateLimiterCtx.RateLimitCtx(context.Background(), "k", 1)
		if err != nil {
			return "", false, err
		}
		if !limited {
			admitted++
		}
		env.Wait(step)
	}
	return fmt.Sprintf("PerMin(31) without a burst admitted %d requests in one minute", admitted), admitted > 32, nil
}}

// The caller who finds the key there already sets its deadline all the same.
var throttledExpire = Confirmation{Name: "throttled-expire", Redis: true, Run: func(env Env) (string, bool, error) {
	ctx := context.Background()
	store, err := goredisstore.NewCtx(env.Redis, "throttled-expire:")
	if err != nil {
		return "", false, err
	}
	won, err := store.SetIfNotExistsWithTTL(ctx, "k", 1, time.Minute)
	if err != nil || !won {
		return "the key was there already", false, err
	}
	won, err = store.SetIfNotExistsWithTTL(ctx, "k", 2, time.Second)
	if err != nil {
		return "", false, err
	}
	left, err := env.Redis.PTTL(ctx, "throttled-expire:k").Result()
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("a key that was set for 1m0s lives %v after a second caller failed to set it",
			left.Round(time.Second)),
		!won && left <= time.Second, nil
}}
