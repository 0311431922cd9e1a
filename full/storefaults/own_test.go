//go:build linux

package storefaults

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// corrupt is a strategy that counts wrong, all by itself.
type corrupt struct {
	redis  goredis.UniversalClient
	prefix string
	forget int64 // each so many decisions it removes the counter; 0 never
	pause  time.Duration
	taken  *atomic.Int64
}

func (c *corrupt) get(ctx context.Context, s quota.Subject) (int64, error) {
	n, err := c.redis.Get(ctx, c.prefix+string(s)).Int64()
	if errors.Is(err, goredis.Nil) {
		err = nil
	}
	return n, err
}

func (c *corrupt) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d := quota.Decision{Tier: quota.TierRedis}
	n, err := c.get(ctx, r.Subject)
	if err != nil {
		return d, err
	}
	if r.ID < bounds.ProbeID {
		_ = (clock.Wall{}).Sleep(ctx, c.pause)
	}
	if n+r.Units <= r.Policy.Limit {
		d.Admitted = true
		err = c.redis.Set(ctx, c.prefix+string(r.Subject), n+r.Units, 0).Err()
	}
	if c.forget > 0 && c.taken.Add(1)%c.forget == 0 {
		err = c.redis.Del(ctx, c.prefix+string(r.Subject)).Err()
	}
	return d, err
}

func (c *corrupt) Used(ctx context.Context, s quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	n, err := c.get(ctx, s)
	return []quota.Reading{{Tier: quota.TierRedis, Units: n, Known: true}}, err
}

func (c *corrupt) Close(context.Context) error { return nil }

// shared opens a started server as one that others have access to.
func shared(t *testing.T, server *redisstore.Store) stores.Store {
	t.Helper()
	store, err := stores.Opener(redisstore.Open)(t.Context(), redisURL(server, server.Info().Addr, ""), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// TestOwnFaultsAreNotTheStores: on a store that others have access to, a strategy that loses
// counts by a race is called broken. One that removes its own counters is broken or undecided, and never right.
func TestOwnFaultsAreNotTheStores(t *testing.T) {
	every := monitor.Every
	timeout := monitor.Timeout
	t.Cleanup(func() {
		monitor.Every = every
		monitor.Timeout = timeout
	})
	monitor.Every = 10 * time.Millisecond
	monitor.Timeout = time.Minute
	server := startRedis(t, "process")
	for name, planted := range map[string]corrupt{
		"racy":    {pause: time.Millisecond},
		"forgets": {forget: 40},
	} {
		t.Run(name, func(t *testing.T) {
			store := shared(t, server)
			r := measured(t, "incr-expire", store, func(cfg *measure.Config) {
				taken := new(atomic.Int64)
				cfg.Load = harness.Closed()
				cfg.Policy.Limit = 60
				cfg.Requests = 6000
				cfg.Duration = 0
				cfg.Stream.Set("subjects", 12)
				cfg.Strategies = []strategies.Selection{{Meta: &strategies.Meta{
					Name: "corrupt", Doc: "counts wrong", Form: strategies.Baseline, Counts: quota.CountsAdmitted,
					Needs: []strategies.Need{strategies.NeedRedis}, Kinds: quota.Kinds(), Guarantee: []quota.Clause{quota.Exactly()},
					Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
						c := planted
						c.redis = strategies.Redis(env)
						c.prefix = env.Prefix
						c.taken = taken
						return &c, nil
					},
				}}}
			})
			wants := []string{results.Broken}
			forgets := planted.forget > 0
			if forgets { // nobody can tell it from somebody else who removes keys, unless no look saw a removal
				wants = append(wants, results.Undecided)
			}
			if r.Audit.Has("store-changed") != forgets || r.Leak.Units == 0 || len(r.Guarantee) != 1 ||
				!slices.Contains(wants, r.Guarantee[0].Verdict) {
				t.Errorf("leak %+v, guarantee %+v, audit %+v", r.Leak, r.Guarantee, r.Audit)
			}
		})
	}
}

// emptied is a strategy whose store is emptied when its subjects have been set up.
type emptied struct {
	strategies.Strategy
	strategies.Viewer
	strategies.Provisioner
	empty func(context.Context) error
}

func (e *emptied) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if err := e.Provisioner.Provision(ctx, p, grants); err != nil ||
		strings.HasPrefix(string(grants[0].Subject), "warm-up") {
		return err
	}
	return e.empty(ctx)
}

// TestLossBeforeThePass: what a store loses before the first request is its loss, too.
func TestLossBeforeThePass(t *testing.T) {
	server := startRedis(t, "process")
	store := shared(t, server)
	r := measured(t, "incr-expire-atomic", store, func(cfg *measure.Config) {
		cfg.Load = harness.Closed()
		cfg.Policy.Limit = 60
		cfg.Requests = 2000
		cfg.Duration = 0
		cfg.Stream.Set("subjects", 12)
		cfg.Stream.Set("fill", 1)
		meta := *cfg.Strategies[0].Meta
		open := meta.Open
		meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			s, err := open(ctx, env)
			if err != nil {
				return nil, err
			}
			return &emptied{s, s.(strategies.Viewer), s.(strategies.Provisioner), func(ctx context.Context) error {
				return server.Admin().FlushAll(ctx).Err()
			}}, nil
		}
		cfg.Strategies[0].Meta = &meta
	})
	found := ""
	for _, x := range r.Audit.Reasons {
		if x.Code == "store-lost-data" {
			found = x.Detail
		}
	}
	if r.Leak.Units == 0 || r.Err() == nil || found != "redis lost what the run kept there, before the first request" ||
		slices.ContainsFunc(r.Guarantee, func(c results.Clause) bool {
			return c.Verdict == results.Broken
		}) {
		t.Errorf("%q, leak %+v, guarantee %+v, audit %+v", found, r.Leak, r.Guarantee, r.Audit)
	}
}

// TestFreezeOfTwoSeconds: a store that stands still for two seconds misses a look, whenever
// that begins, and one that does so for one second misses none.
func TestFreezeOfTwoSeconds(t *testing.T) {
	if monitor.Timeout <= time.Second+monitor.Every || monitor.Timeout >= 2*time.Second-2*monitor.Every {
		t.Errorf("a look waits for %v, so that it is chance which of them it misses", monitor.Timeout)
	}
	testenv.Long(t)
	server := startRedis(t, "process")
	store, err := stores.Opener(redisstore.Open)(t.Context(), redisURL(server, server.Info().Addr, ""), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for range 3 {
		timer := passTimer{make(chan struct{}), make(chan struct{})}
		stopped := make(chan error, 1)
		go func() {
			<-timer.begun
			_ = (clock.Wall{}).Sleep(t.Context(), 500*time.Millisecond)
			stopped <- suffers(server, "stopped", func(context.Context) time.Duration { return 2 * time.Second })(t.Context())
		}()
		r := measured(t, "incr-expire-atomic", store, func(cfg *measure.Config) {
			cfg.Timer, cfg.Duration, cfg.Load = timer, 3500*time.Millisecond, harness.OpenAt(faultRate)
		})
		if err := <-stopped; err != nil || !r.Audit.Has("store-failed") || r.Err() == nil {
			t.Errorf("audit %+v, %v", r.Audit, err)
		}
	}
}

// TestUnseenChangesAreTold: on a store that others have access to, the record says of which strategies a change by
// others would not be seen. On one of the run's own there is nobody else.
func TestUnseenChangesAreTold(t *testing.T) {
	server := startRedis(t, "process")
	for strategy, want := range map[string]bool{"sliding-log": true, "incr-expire-atomic": false} {
		for _, store := range []stores.Store{shared(t, server), server} {
			r := measured(t, strategy, store, func(cfg *measure.Config) {
				cfg.Load = harness.Closed()
				cfg.Requests = 500
				cfg.Duration = 0
				if strategy == "sliding-log" {
					cfg.Policy.Window = quota.Window{Kind: quota.Rolling, Length: time.Hour}
				}
			})
			if got := r.Audit.Has("changes-unseen"); got != (want && !store.Owned()) {
				t.Errorf("%s on a store of the run's own %t: %+v", strategy, store.Owned(), r.Audit)
			}
		}
	}
}
