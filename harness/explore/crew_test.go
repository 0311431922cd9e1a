package explore_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
)

// A strategy that ends the goroutine that it is called on, as the FailNow of a test does,
// ends the search: nothing is claimed, and no worker waits for another for ever.
func TestEndedGoroutine(t *testing.T) {
	var gone atomic.Bool // it ends one goroutine, which may be that of any worker
	ends := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		before, err := p.env.Redis.Get(ctx, "n").Int64()
		for _, key := range []string{"a", "b", "c", "d"} {
			if err == nil || errors.Is(err, redis.Nil) {
				err = p.env.Redis.Get(ctx, key).Err()
			}
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return quota.Decision{}, err
		}
		n, err := p.env.Redis.Incr(ctx, "n").Result()
		if n == before+3 && !gone.Swap(true) { // never where one call comes after the other
			runtime.Goexit()
		}
		return verdict(n == 1, err)
	})
	for _, workers := range []int{1, 4, 4, 4, 4, 4, 4, 4} {
		gone.Store(false)
		var r *explore.Result
		ended := make(chan error, 1)
		go func() {
			err := errors.New("ended")
			defer func() { ended <- err }()
			r, err = explore.Run(t.Context(), ends, explore.Config{Clients: 3, Limit: 1, Workers: workers, Properties: []explore.Property{explore.Leak}})
		}()
		if err := <-ended; err == nil || r != nil && r.Claim != "" {
			t.Errorf("%d workers: %+v, %v", workers, r, err)
		}
	}
}
