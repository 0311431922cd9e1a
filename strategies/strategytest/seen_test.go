package strategytest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// elsewhere is a client of the strategy's own to the server of the given one.
func elsewhere(tb testing.TB, given redis.UniversalClient) *redis.Client {
	o := *given.(*redis.Client).Options()
	o.PoolSize = 2
	c := redis.NewClient(&o)
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// route is how a command of a counter reaches its store: the context and the
// client, made from those that are given.
type route func(context.Context, redis.UniversalClient) (context.Context, redis.UniversalClient)

func direct(ctx context.Context, c redis.UniversalClient) (context.Context, redis.UniversalClient) {
	return ctx, c
}

// counter is a right fixed window on Redis, over keys and a route that the test
// chooses.
func counter(t *testing.T, key func(base string) string, via route) *strategies.Meta {
	t.Helper()
	m := strategies.FromFunc("counter", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, k string) (bool, error) {
				ctx, c := via(ctx, strategies.Redis(env))
				n, err := c.Incr(ctx, key(k)).Result()
				return n <= p.Limit, err
			}), nil
		})
	m.Reset, m.Guarantee = strategies.ResetsMissing, []quota.Clause{quota.Exactly()}
	return &m
}

func same(k string) string { return k }

// TestUnseenWorkFails: a limiter whose work the suite cannot see fails, and is
// told why, though all that it decides is right.
func TestUnseenWorkFails(t *testing.T) {
	server := storetest.Redis(t)
	s := Stores{Redis: clients(server), Alone: true}
	own := elsewhere(t, clients(server)(t))
	wall := clock.Wall{}.Now()
	for name, c := range map[string]struct {
		meta        *strategies.Meta
		check, want string
	}{
		"right":               {counter(t, same, direct), "sequential", ""},
		"right, by the clock": {counter(t, same, direct), "clock", ""},
		"context.Background": {counter(t, same,
			func(_ context.Context, c redis.UniversalClient) (context.Context, redis.UniversalClient) {
				return context.Background(), c
			}), "sequential", "incr came without the context of the call that it is part of"},
		"connection of its own": {counter(t, same,
			func(ctx context.Context, _ redis.UniversalClient) (context.Context, redis.UniversalClient) {
				return ctx, own
			}), "sequential", "no command came through the client that it was given"},
		"connection beside the given one": {counter(t, same,
			func(ctx context.Context, c redis.UniversalClient) (context.Context, redis.UniversalClient) {
				_ = c.Ping(ctx)
				return ctx, elsewhere(t, c)
			}), "sequential", "reached Redis past the client that the strategy was given"},
		"time.Now in a key": {counter(t, func(k string) string {
			return k + ":" + strconv.FormatInt(wall.Unix(), 10)
		}, direct), "clock", "the wall clock's time in seconds"},
		"time.Now as a date": {counter(t, func(k string) string {
			return k + ":" + wall.UTC().Format(time.DateOnly)
		}, direct), "clock", "the wall clock's time"},
		"the store's time":              {byStore(false), "clock", ""},
		"the store's time and time.Now": {byStore(true), "clock", "the wall clock's time in milliseconds"},
		"time.Now in memory":            {inMemory(clock.Wall{}.Now), "clock", "it takes the time from elsewhere"},
		"the clock, in memory":          {inMemory(nil), "clock", ""},
		"fails every time":              {refusing(), "concurrent", "every take ended in an error"},
	} {
		t.Run(name, func(t *testing.T) {
			r := observe(t, func(tb testing.TB) { named(t, c.check).run(tb, c.meta, s) })
			if r.failed != (c.want != "") || !strings.Contains(r.log.String(), c.want) {
				t.Errorf("failed: %v, want the reason %q:\n%s", r.failed, c.want, r.log.String())
			}
		})
	}
}

// byStore puts the time that Redis tells into its keys, by TIME and by a script, and if
// own is set notes that of package time, too.
func byStore(own bool) *strategies.Meta {
	m := strategies.FromFunc("by-store", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return strategies.AllowFunc(func(ctx context.Context, k string) (bool, error) {
				at, err := strategies.Redis(env).Time(ctx).Result()
				if err != nil {
					return false, err
				}
				ms, err := strategies.Redis(env).Eval(ctx, "return redis.call('TIME')[1] * 1000", nil).Int64()
				if err != nil {
					return false, err
				}
				strategies.Redis(env).HSet(ctx, k+":seen", "s", at.Unix(), "ms", ms)
				if own {
					strategies.Redis(env).Set(ctx, k+":own", clock.Wall{}.Now().UnixMilli(), time.Hour)
				}
				n, err := strategies.Redis(env).Incr(ctx, k).Result()
				return n <= p.Limit, err
			}), nil
		})
	m.Reset, m.Guarantee = strategies.ResetsMissing, []quota.Clause{quota.Exactly()}
	return &m
}

// refusing answers every take with an error.
func refusing() *strategies.Meta {
	m := strategies.FromFunc("refusing", []quota.Kind{quota.Fixed},
		func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
			return nil, errors.New("no")
		})
	return &m
}

// memoryWindow is a fixed window in memory.
type memoryWindow struct {
	mu     sync.Mutex
	policy *quota.Policy
	now    func() time.Time
	spans  map[string]int64
	used   map[string]int64
}

func (m *memoryWindow) Allow(ctx context.Context, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if span := m.policy.Window.At(m.now()).Index; m.spans[key] != span {
		m.spans[key], m.used[key] = span, 0
	}
	m.used[key]++
	return m.used[key] <= m.policy.Limit, ctx.Err()
}

// inMemory takes the time from now, or from the clock if it is nil.
func inMemory(now func() time.Time) *strategies.Meta {
	m := strategies.FromFunc("in-memory", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			if now == nil {
				return &memoryWindow{policy: p, now: env.Clock.Now, spans: map[string]int64{}, used: map[string]int64{}}, nil
			}
			return &memoryWindow{policy: p, now: now, spans: map[string]int64{}, used: map[string]int64{}}, nil
		})
	m.Needs = nil
	m.Guarantee = nil
	return &m
}

// TestFromFuncConforms runs the whole suite on adapters in memory and on Redis.
func TestFromFuncConforms(t *testing.T) {
	set(t, &libraryWindow, 50*time.Millisecond)
	Run(t, inMemory(nil))
	Run(t, counter(t, same, direct))
}

// TestFailures: the suite tells what is wrong without failing its caller.
func TestFailures(t *testing.T) {
	set(t, &libraryWindow, 50*time.Millisecond)
	if got := Failures(t, inMemory(nil)); len(got) != 0 {
		t.Errorf("a right strategy: %q", got)
	}
	got := strings.Join(Failures(t, refusing()), "\n")
	if !strings.Contains(got, "sequential: ") || !strings.Contains(got, "making the limiter: no") {
		t.Errorf("a strategy that never answers: %s", got)
	}
}

// TestOtherStores: a strategy gets the clients of the stores that it needs by
// name, and is skipped if one is missing.
func TestOtherStores(t *testing.T) {
	m := inMemory(nil)
	m.Needs = []strategies.Need{"etcd"}
	inner := m.Open
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		if env.Clients["etcd"] != "a client" {
			return nil, errors.New("no client of etcd")
		}
		return inner(ctx, env)
	}
	if r := observe(t, func(tb testing.TB) { checkSequential(tb, m, Stores{}) }); !r.skipped || r.failed {
		t.Errorf("without etcd: skipped %v, failed %v", r.skipped, r.failed)
	}
	etcd := Stores{Clients: map[string]func(testing.TB) any{"etcd": func(testing.TB) any { return "a client" }}}
	if r := observe(t, func(tb testing.TB) { checkSequential(tb, m, etcd) }); r.skipped || r.failed {
		t.Errorf("with etcd: skipped %v, failed %v:\n%s", r.skipped, r.failed, r.log.String())
	}
}
