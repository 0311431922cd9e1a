package reserve

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func openAppLock(t *testing.T, env strategies.Env) *appLock {
	t.Helper()
	s, err := appLockMeta.Open(t.Context(), env)
	must(t, err)
	return s.(*appLock)
}

// TestAppLockOneInstance: many callers of one process are let in one by one.
func TestAppLockOneInstance(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := openAppLock(t, env)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 10 {
					req := quota.Request{ID: uint64(100*w + i), Subject: "t1", Policy: uploads, Units: 50}
					if d, err := s.Take(t.Context(), req); err != nil {
						t.Error(err)
					} else if d.Admitted {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n != 20 {
			t.Errorf("%d uploads of 50 MB were let into 1000 MB", n)
		}
		used(t, s, 1000)
		if n := len(s.wanted); n != 0 {
			t.Errorf("%d locks are left that no caller wants", n)
		}
	})
}

// TestAppLockTwoInstances: a lock of one process means nothing to another, and the
// record's race is back.
func TestAppLockTwoInstances(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		other := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
		t.Cleanup(func() { closing(t, other) })
		a := openAppLock(t, env)
		env.Clients = map[string]any{"redis": other}
		b := openAppLock(t, env)
		must(t, a.Provision(t.Context(), uploads, []strategies.Grant{{Subject: "t1", Limit: 1000, Used: 800}}))
		other.AddHook(&betweenGetAndSet{what: func() { take(t, a, 100, true) }})
		take(t, b, 150, true)
		used(t, a, 950)
	})
}

// TestAppLockWaits: a caller that gives up waiting gets an error and takes nothing,
// other tenants do not wait at all, and those who wait get their turn.
func TestAppLockWaits(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		s := openAppLock(t, env)
		unlock, err := s.lock(t.Context(), uploads, "t1")
		must(t, err)
		ctx, cancel := context.WithDeadline(t.Context(), clock.Wall{}.Now().Add(20*time.Millisecond))
		defer cancel()
		d, err := s.Take(ctx, quota.Request{ID: 1, Subject: "t1", Policy: uploads, Units: 1})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v and %v, want the deadline's error", d, err)
		}
		d, err = s.Take(t.Context(), quota.Request{ID: 2, Subject: "t2", Policy: uploads, Units: 1})
		if err != nil || !d.Admitted {
			t.Errorf("another tenant: %+v and %v", d, err)
		}
		done := make(chan error)
		go func() {
			_, err := s.Take(t.Context(), quota.Request{ID: 3, Subject: "t1", Policy: uploads, Units: 1})
			done <- err
		}()
		for asks := false; !asks; runtime.Gosched() { // the holder is the other one
			s.mu.Lock()
			asks = s.wanted[tenant{uploads.Name, "t1"}].callers == 2
			s.mu.Unlock()
		}
		select {
		case err := <-done:
			t.Errorf("got past a lock that is held: %v", err)
		case <-time.After(20 * time.Millisecond): // what got past it later would be used
		}
		used(t, s, 0)
		unlock()
		must(t, <-done)
		used(t, s, 1)
	})
}
