// Command foreign is quotabench with limiters as published ones are written: with the
// clock of package time, a goroutine in the background, a mutex across calls of the store,
// and a connection of their own. Two of them have a twin with a defect.
//
//	go run ./foreign explore own-clock
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }

func init() {
	memory := func(name string, make func(policy *quota.Policy) strategies.Allower) {
		meta := strategies.FromFunc(name, []quota.Kind{quota.Fixed},
			func(_ context.Context, _ strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
				return make(policy), nil
			})
		meta.Needs = nil
		meta.PerProcess = true
		register(meta)
	}
	for name, late := range map[string]time.Duration{"own-clock": 0, "own-clock-late": time.Second} {
		memory(name, func(policy *quota.Policy) strategies.Allower {
			return &clocked{limit: policy.Limit, window: policy.Window.RealLength(), late: late, counts: map[string]count{}}
		})
	}
	for name, times := range map[string]time.Duration{"background": 1, "background-often": 2} {
		memory(name, func(policy *quota.Policy) strategies.Allower {
			return newResetting(policy.Limit, policy.Window.RealLength()/times)
		})
	}
	stored := func(name string, make func(env strategies.Env, policy *quota.Policy) strategies.Allower) {
		register(strategies.FromFunc(name, []quota.Kind{quota.Fixed},
			func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
				return make(env, policy), nil
			}))
	}
	stored("mutex-across", func(env strategies.Env, policy *quota.Policy) strategies.Allower {
		return &locking{client: strategies.Redis(env), limit: policy.Limit, window: policy.Window.RealLength()}
	})
	stored("own-pool", func(env strategies.Env, policy *quota.Policy) strategies.Allower {
		options := *strategies.Redis(env).(*redis.Client).Options()
		return &owning{locking{client: redis.NewClient(&options), limit: policy.Limit, window: policy.Window.RealLength()}}
	})
}

func register(meta strategies.Meta) {
	meta.Foreign = true
	meta.Guarantee = []quota.Clause{quota.Exactly(quota.FaultClock)}
	strategies.Register(meta)
}

// clocked counts in fixed windows of package time. late is a defect: what comes so soon
// after a window counts to it.
type clocked struct {
	mu           sync.Mutex
	window, late time.Duration
	limit        int64
	counts       map[string]count // by key
}

type count struct {
	start time.Time
	used  int64
}

func (c *clocked) Allow(_ context.Context, key string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	n := c.counts[key]
	if !now.Before(n.start.Add(c.window + c.late)) {
		n = count{start: now.Truncate(c.window)}
	}
	admitted := n.used < c.limit
	if admitted {
		n.used++
	}
	c.counts[key] = n
	return admitted, nil
}

// resetting forgets what was used on a goroutine of its own, at the end of each stretch.
type resetting struct {
	mu    sync.Mutex
	limit int64
	used  map[string]int64 // by key
	stop  chan struct{}
}

func newResetting(limit int64, each time.Duration) *resetting {
	r := &resetting{limit: limit, used: map[string]int64{}, stop: make(chan struct{})}
	go func() {
		for {
			now := time.Now()
			select {
			case <-time.After(now.Truncate(each).Add(each).Sub(now)):
				r.mu.Lock()
				clear(r.used)
				r.mu.Unlock()
			case <-r.stop:
				return
			}
		}
	}()
	return r
}

func (r *resetting) Allow(_ context.Context, key string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used[key] >= r.limit {
		return false, nil
	}
	r.used[key]++
	return true, nil
}

func (r *resetting) Close() error {
	close(r.stop)
	return nil
}

// locking reads a counter of the window and then raises it, under a mutex of its process.
type locking struct {
	mu     sync.Mutex
	client redis.UniversalClient
	limit  int64
	window time.Duration
}

func (l *locking) Allow(ctx context.Context, key string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key = fmt.Sprintf("%s:%d", key, time.Now().UnixNano()/int64(l.window))
	n, err := l.client.Get(ctx, key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if n >= l.limit {
		return false, nil
	}
	if err := l.client.Incr(ctx, key).Err(); err != nil {
		return false, err
	}
	return true, l.client.PExpire(ctx, key, l.window).Err()
}

// owning is one with a pool of its own.
type owning struct{ locking }

func (o *owning) Close() error { return o.client.Close() }
