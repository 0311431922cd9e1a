package sim_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const (
	month   = 30 * 24 // hours
	perHour = 10
)

// simulateForeign has one subject ask some 60 times an hour, of which 10 are allowed.
func simulateForeign(t *testing.T, hours int, needs []strategies.Need, instances int,
	open func(env strategies.Env, p *quota.Policy) strategies.Allower) *sim.Report {
	t.Helper()
	m := strategies.FromFunc("foreign", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
			return open(env, p), nil
		})
	m.Needs = needs
	m.Foreign = true
	p := testkit.Policy(t, "10 requests per fixed 1h")
	w, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{Plan: harness.Plan{
		Policy: p,
		Traffic: harness.Traffic{
			Workload: w,
			Load:     harness.OpenAt(60. / 3600), Duration: time.Duration(hours) * time.Hour,
			Stream: workloads.Params{Options: quota.Options{"subjects": "1"}},
		},
		Strategies: []strategies.Selection{{Meta: &m}}, Seed: 1, Instances: instances,
	}}
	r, err := sim.Run(t.Context(), cfg)
	if r == nil {
		t.Fatal(err)
	}
	return r
}

// hourly counts by package time, or has a goroutine of its own forget.
type hourly struct {
	mu     sync.Mutex
	window time.Time
	used   int64
	every  time.Duration // windows are that long
	stop   chan struct{} // of the goroutine, nil for none
}

func newHourly(every time.Duration, background bool) *hourly {
	h := &hourly{every: every}
	if background {
		h.stop = make(chan struct{})
		go h.forget()
	}
	return h
}

func (h *hourly) forget() {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.mu.Lock()
			h.used = 0
			h.mu.Unlock()
		case <-h.stop:
			return
		}
	}
}

func (h *hourly) Allow(context.Context, string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now().Truncate(h.every) //nolint:forbidigo // what is tested is code that does this
	if h.stop == nil && !now.Equal(h.window) {
		h.window = now
		h.used = 0
	}
	h.used++
	return h.used <= perHour, nil
}

func (h *hourly) Close() error {
	if h.stop != nil {
		close(h.stop)
	}
	return nil
}

// leaks reports whether so many hours leaked 10 units each, or nothing. An hour of which a
// half was asked for less than 10 times leaks less. late is set for windows that begin
// with the first request, and so reject at the beginning of an hour.
func leaks(t *testing.T, what string, r *sim.Report, hours int, each, late bool) {
	t.Helper()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	run := &r.Runs[0]
	want := int64(0)
	if each {
		want = int64(hours) * perHour
	}
	if got := run.Leak.Units; got > want || got < want*99/100 || run.FalseRejects.Count > 0 != late ||
		run.Admitted-got < int64(hours)*perHour {
		t.Errorf("%s: leak %d, want %d; %d false rejects, %d admitted", what, got, want, run.FalseRejects.Count, run.Admitted)
	}
}

// Windows of half an hour, by package time or on a goroutine of the limiter's own, leak 10
// units in each hour of a month, and those of an hour none.
func TestForeignMonth(t *testing.T) {
	testenv.Sequential(t)
	hours := testenv.Pick(10*24, month)
	for _, background := range []bool{false, true} {
		for _, every := range []time.Duration{time.Hour, 30 * time.Minute} {
			r := simulateForeign(t, hours, nil, 1, func(strategies.Env, *quota.Policy) strategies.Allower {
				return newHourly(every, background)
			})
			leaks(t, every.String(), r, hours, every < time.Hour, background)
		}
	}
}

// inStore counts in Redis, under contexts of its own.
type inStore struct {
	rdb  redis.UniversalClient
	how  string // what it does besides
	keep time.Duration
	turn chan struct{}
}

func (c inStore) Allow(ctx context.Context, key string) (ok bool, err error) {
	switch c.how {
	case "publish": // only miniredis has it
		if err := c.rdb.Publish(ctx, "channel", key).Err(); err != nil {
			return false, err
		}
	case "blpop":
		if err := c.rdb.BLPop(ctx, time.Second, "queue").Err(); err != nil {
			return false, err
		}
	case "turn": // that it does not give back
		c.turn <- struct{}{}
	case "sleeps":
		time.Sleep(time.Millisecond)
	case "aside":
		done := make(chan struct{})
		go func() {
			defer close(done)
			ok, err = c.ask(key)
		}()
		<-done
		return ok, err
	}
	return c.ask(key)
}

func (c inStore) ask(key string) (bool, error) {
	ctx := context.Background()
	key += time.Now().Truncate(c.keep).String() //nolint:forbidigo // what is tested is code that does this
	n, err := c.rdb.Incr(ctx, key).Result()
	if err == nil {
		err = c.rdb.Expire(ctx, key, c.keep).Err()
	}
	return n <= perHour, err
}

// Commands under contexts of the limiter's own are those of the caller that sends them,
// and a seed says what happens.
func TestForeignStore(t *testing.T) {
	days := testenv.Pick(24, 3*24)
	for keep, how := range map[time.Duration]string{time.Hour: "publish", 30 * time.Minute: ""} {
		var traces []string
		for range 2 {
			r := simulateForeign(t, days, []strategies.Need{strategies.NeedRedis}, 3,
				func(env strategies.Env, _ *quota.Policy) strategies.Allower {
					return inStore{rdb: strategies.Redis(env), how: how, keep: keep}
				})
			leaks(t, keep.String(), r, days, keep < time.Hour, false)
			traces = append(traces, r.Runs[0].Trace)
		}
		if traces[0] != traces[1] {
			t.Errorf("%v: traces %s", keep, traces)
		}
	}
}

// What a simulation cannot drive is named, and the run does not count.
func TestForeignNamed(t *testing.T) {
	for how, code := range map[string]string{"sleeps": "waits-in-call", "aside": "own-goroutine", "blpop": "run-failed",
		"turn": codes.Hung} {
		r := simulateForeign(t, 24, []strategies.Need{strategies.NeedRedis}, 2,
			func(env strategies.Env, _ *quota.Policy) strategies.Allower {
				return inStore{rdb: strategies.Redis(env), how: how, keep: time.Hour, turn: make(chan struct{}, 1)}
			})
		a := &r.Runs[0].Audit
		named := slices.ContainsFunc(a.Reasons, func(x results.Reason) bool {
			return x.Code == code && (how != "turn" || strings.Contains(x.Detail, "inStore.Allow (foreign_test.go"))
		})
		if r.Err() == nil || !named {
			t.Errorf("%s: %+v", how, a)
		}
	}
}

// locking counts rightly, and holds a lock meanwhile: a channel if it has one.
type locking struct {
	rdb   redis.UniversalClient
	limit int64
	mu    sync.Mutex
	turn  chan struct{}
}

func (l *locking) Allow(ctx context.Context, key string) (bool, error) {
	if l.turn == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
	} else {
		l.turn <- struct{}{}
		defer func() { <-l.turn }()
	}
	p := l.rdb.TxPipeline()
	n := p.Incr(ctx, key)
	p.PExpire(ctx, key, time.Second)
	_, err := p.Exec(ctx)
	return err == nil && n.Val() <= l.limit, err
}

// A lock that is held across a store call cannot be simulated. It is named, and the limiter not accused.
func TestLockAcrossTheStore(t *testing.T) {
	for what, state := range map[string]string{
		"mutex": "[sync.Mutex.Lock]", "channel": "[chan send]", "foreign mutex": "[sync.Mutex.Lock]",
		"foreign channel": "[chan send (durable)]",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // each waits for as long as a decision may take
			m := strategies.FromFunc("locking", []quota.Kind{quota.FirstRequest},
				func(_ context.Context, env strategies.Env, p *quota.Policy) (strategies.Allower, error) {
					l := &locking{rdb: strategies.Redis(env), limit: p.Limit}
					if strings.HasSuffix(what, "channel") {
						l.turn = make(chan struct{}, 1)
					}
					return l, nil
				})
			m.Foreign = strings.HasPrefix(what, "foreign")
			p := testkit.Policy(t, "10 requests per first-request 1s")
			w, err := workloads.Lookup("steady")
			if err != nil {
				t.Fatal(err)
			}
			_, err = sim.Run(t.Context(), sim.Config{Plan: harness.Plan{
				Policy: p,
				Traffic: harness.Traffic{
					Workload: w,
					Load:     harness.OpenAt(1000), Duration: 10 * time.Second,
					Stream: workloads.Params{Options: quota.Options{"subjects": "1"}},
				},
				Strategies: []strategies.Selection{{Meta: &m}}, Seed: 1, Instances: 1,
				Callers: harness.Callers{DecisionTimeout: 2 * time.Second},
			}})
			for _, text := range []string{"(*locking).Allow (foreign_test.go", state, "nothing is said of the limiter"} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("no %q: %v", text, err)
				}
			}
		})
	}
}
