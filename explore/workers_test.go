package explore_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A strategy that ends the goroutine that it is called on, as the FailNow of a test does,
// ends the search: nothing is claimed, and no worker waits for another forever.
func TestEndedGoroutine(t *testing.T) {
	var gone atomic.Bool // it ends one goroutine, which may be that of any worker
	ends := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		before, n, err := slow(ctx, p)
		if n == before+3 && !gone.Swap(true) { // never if one call comes after the other
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
			r, err = explore.Run(t.Context(), ends,
				explore.Config{Clients: 3, Limit: 1, Resources: explore.Resources{Workers: workers},
					Properties: []explore.Property{explore.Leak}})
		}()
		if err := <-ended; err == nil || r != nil && r.Claim != "" {
			t.Errorf("%d workers: %+v, %v", workers, r, err)
		}
	}
}

// slow counts a call after some reads, so that a search has many states. before is what
// it read first.
func slow(ctx context.Context, p *planted) (before, n int64, err error) {
	before, err = strategies.Redis(p.env).Get(ctx, "n").Int64()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err == nil || errors.Is(err, redis.Nil) {
			err = strategies.Redis(p.env).Get(ctx, key).Err()
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, 0, err
	}
	n, err = strategies.Redis(p.env).Incr(ctx, "n").Result()
	return before, n, err
}

// If a strategy blocks on the search's own engine, the workers, which could go on, do
// not stay behind.
func TestWorkersOfHungSearch(t *testing.T) {
	var own atomic.Pointer[redis.UniversalClient] // of the engine that is opened first
	var crew, blocks atomic.Bool                  // there is another one, and the first one blocks
	left := make(chan struct{})
	hangs := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		client := strategies.Redis(p.env)
		own.CompareAndSwap(nil, &client)
		switch {
		case client != *own.Load():
			crew.Store(true)
		case crew.Load():
			blocks.Store(true)
			<-left
		}
		_, n, err := slow(ctx, p)
		return verdict(n == 1, err)
	})
	patiently(t, &blocks, func(patience time.Duration) {
		own.Store(nil)
		crew.Store(false)
		_, err := explore.Run(t.Context(), hangs, explore.Config{
			Clients: 4, Limit: 1, Resources: explore.Resources{Workers: 4}, Bounds: explore.Bounds{DecisionTimeout: patience},
			Properties: []explore.Property{explore.Stuck},
		})
		var hung *explore.HungError
		if !errors.As(err, &hung) {
			t.Errorf("%v", err)
		}
	})
	workers := func() (n int) {
		for _, g := range stacks.All() {
			if strings.Contains(g.Text, "explore.(*workers).worker") {
				n++
			}
		}
		return n
	}
	for range 12_000 { // two minutes
		if workers() == 0 {
			break
		}
		_ = clock.Wall{}.Sleep(t.Context(), 10*time.Millisecond)
	}
	if n := workers(); n > 0 {
		t.Errorf("%d workers are left", n)
	}
	close(left)
}

// A script that is sent only if clients come between each other is unknown to the
// store in each run before that, on any worker and whatever was run before.
func TestScriptsSentLate(t *testing.T) {
	testenv.Sequential(t)
	script := redis.NewScript("return redis.call('INCR', KEYS[1])")
	late := plant(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		before, n, err := slow(ctx, p)
		if err == nil && n != before+1 {
			err = script.Run(ctx, strategies.Redis(p.env), []string{"late"}).Err()
		}
		return verdict(n == 1, err)
	})
	cfg := explore.Config{Clients: 3, Limit: 1, Properties: []explore.Property{explore.Stuck}}
	var first string
	for _, workers := range []int{1, 2, 4} {
		cfg.Workers = workers
		r, err := explore.Run(t.Context(), late, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Depth != 22 {
			t.Errorf("%d workers: %d steps deep, want six of each client and two scripts that are sent twice", workers, r.Depth)
		}
		if first == "" {
			first = string(got)
		}
		if string(got) != first {
			t.Errorf("%d workers found\n%s\none\n%s", workers, got, first)
		}
	}
	census, err := explore.Enumerate(t.Context(), late, explore.Config{Clients: 2, Limit: 1})
	if err != nil || !census.Complete {
		t.Errorf("%+v, %v", census, err)
	}
}
