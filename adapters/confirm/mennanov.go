package confirm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mennanov/limiters"
)

// moved is a clock that is moved by hand.
type moved struct{ now time.Time }

func (m *moved) Now() time.Time { return m.now }

// pass lets time pass for the server and for the limiter.
func (m *moved) pass(env Env, duration time.Duration) {
	env.Wait(duration)
	m.now = m.now.Add(duration)
}

// readmeTokens is the limiter of the library's README except for its numbers. The key
// lives as long as one token takes to flow in.
func readmeTokens(env Env, clock limiters.Clock, size int64, rate time.Duration, key string) *limiters.TokenBucket {
	return limiters.NewTokenBucket(size, rate, limiters.NewLockNoop(),
		limiters.NewTokenBucketRedis(env.Redis, key, rate, false), clock, limiters.NewStdLogger())
}

// One process asks, so no distributed lock is needed. One token flows in every 200 ms.
// A caller who comes that often and takes what is there must get one each time.
var mennanovTTL = Confirmation{Name: "mennanov-ttl", Redis: true, Run: func(env Env) (string, bool, error) {
	const size, rate, visits = 10, 200 * time.Millisecond, 10
	clock := &moved{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	bucket := readmeTokens(env, clock, size, rate, "mennanov-ttl")
	var taken int64
	for range visits {
		n, err := bucket.TakeMax(context.Background(), size)
		if err != nil {
			return "", false, err
		}
		taken += n
		clock.pass(env, rate)
	}
	return fmt.Sprintf("with a capacity of %d and a token per %v, %d visits %v apart took %d tokens", size, rate, visits,
		rate, taken), taken > size+visits, nil
}}

// The count of the window before is multiplied by what is left of this one in nanoseconds,
// as an int64: 5,000 and 30 days make 1.3e19, of which 9.2e18 fit. The sum is negative, and
// everything is below the limit.
var mennanovOverflow = Confirmation{Name: "mennanov-overflow", Run: func(Env) (string, bool, error) {
	const limit, month = 5_000, 30 * 24 * time.Hour
	clock := &moved{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Truncate(month)}
	window := limiters.NewSlidingWindow(limit, month, limiters.NewSlidingWindowInMemory(), clock, 1e-9)
	var admitted [2]int
	for i := range admitted {
		for range 20_000 {
			_, err := window.Limit(context.Background())
			switch {
			case err == nil:
				admitted[i]++
			case !errors.Is(err, limiters.ErrLimitExhausted):
				return "", false, err
			}
		}
		clock.now = clock.now.Add(month)
	}
	return fmt.Sprintf("with a limit of %d per %v it admitted %d of 20000 requests at the beginning of one window, and "+
			"%d at that of the next", limit, month, admitted[0], admitted[1]),
		admitted[1] > limit, nil
}}

// The key lives until the end of the window, cut down to whole milliseconds. An instance
// that was not yet told of the limit finds none in the last of them.
var mennanovFixed = Confirmation{Name: "mennanov-fixed", Redis: true, Run: func(env Env) (string, bool, error) {
	const limit, window = 5, time.Second
	clock := &moved{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(900 * time.Microsecond)}
	admitted := 0
	ask := func() error {
		fixedWindow := limiters.NewFixedWindow(limit, window, limiters.NewFixedWindowRedis(env.Redis, "mennanov-fixed"),
			clock)
		for range limit {
			if _, err := fixedWindow.Limit(context.Background()); err == nil {
				admitted++
			} else if !errors.Is(err, limiters.ErrLimitExhausted) {
				return err
			}
		}
		return nil
	}
	err := ask()
	clock.pass(env, window-time.Millisecond)
	err = errors.Join(err, ask())
	return fmt.Sprintf("with a limit of %d per %v two instances admitted %d requests in one window", limit, window,
		admitted), admitted > limit, err
}}

// The set of requests under way lives for whole seconds after the last one has come.
var mennanovBuffer = Confirmation{Name: "mennanov-buffer", Redis: true, Run: func(env Env) (string, bool, error) {
	const ttl = 1900 * time.Millisecond
	clock := &moved{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	buffer := limiters.NewConcurrentBuffer(limiters.NewLockNoop(),
		limiters.NewConcurrentBufferRedis(env.Redis, "mennanov-buffer", ttl, clock), 1, limiters.NewStdLogger())
	if err := buffer.Limit(context.Background(), "first"); err != nil {
		return "", false, err
	}
	clock.pass(env, 1100*time.Millisecond)
	err := buffer.Limit(context.Background(), "second")
	if err != nil && !errors.Is(err, limiters.ErrLimitExhausted) {
		return "", false, err
	}
	return fmt.Sprintf("with a capacity of 1 and a TTL of %v a second request after 1.1s was admitted: %t", ttl,
		err == nil), err == nil, nil
}}
