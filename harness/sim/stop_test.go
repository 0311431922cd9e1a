package sim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// asking is one subject that asks 100 times a second, for 50 s.
func asking(t *testing.T, list, policy string) sim.Config {
	t.Helper()
	cfg := config(t, list, policy, "steady")
	cfg.Load = harness.OpenAt(100)
	cfg.Arrivals = "constant"
	cfg.Duration = 50 * time.Second
	cfg.Every = -1
	cfg.Stream.Set("subjects", 1)
	cfg.Stream.Set("over-quota", 0)
	return cfg
}

// legs are a store that is so far away and answers at once.
func legs(d time.Duration) *sim.Network {
	return &sim.Network{Servers: 1, Request: sim.Table{{0, d}, {1e6, d}}, Reply: sim.Table{{0, d}, {1e6, d}}}
}

// A block that an instance has spent from is free for others once its deadline has passed: what
// was spent of it leaks. Within the margin the instance settles it. What the first instance has
// spent until it stands still, at 2.005 s, is what it was asked since the request for its block.
func TestPausedLease(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		pause string
		leaks bool
	}{{"instance/0:paused=20s@0.0401", true}, {"instance/0:paused=400ms@0.0401", false}} {
		cfg := asking(t, "lease:block=1000,expired=free", "agent-api")
		cfg.Instances, cfg.Trouble = 2, trouble.MustParse(c.pause)
		spent := int64(-1)
		want := int64(0)
		for i := range uint64(201) {
			if sim.Placed(&cfg, i) == 0 {
				spent++
			}
		}
		if c.leaks {
			want = spent
		}
		r := &run(t, cfg).Runs[0]
		valid(t, r)
		if r.Leak.Units != want || spent < 50 || r.Admitted != 1000+want {
			t.Errorf("%s: a leak of %d and %d admitted, want a leak of %d; %d were spent", c.pause, r.Leak.Units, r.Admitted,
				want, spent)
		}
		// Of the two bounds on the leak, the one of blocks that are free is any; the other is the limit while no pause is as
		// long as the margin.
		var bounds []int64
		for _, g := range r.Guarantee {
			if g.Property == string(quota.PropertyLeak) {
				bounds = append(bounds, g.Bound)
			}
			if g.Verdict == results.Broken {
				t.Errorf("%s: %+v", c.pause, g)
			}
		}
		if whole := []int64{quota.Unbounded, quota.Unbounded}; c.leaks != slices.Equal(bounds, whole) || len(bounds) != 2 ||
			bounds[1] != 0 && !c.leaks {
			t.Errorf("%s: bounds %d", c.pause, bounds)
		}
		if got := r.Params.Trouble.Strings(); !slices.Equal(got, []string{c.pause}) {
			t.Errorf("the record says %q", got)
		}
	}
}

// A limiter in memory forgets what it has admitted at each restart, and one with counters in
// Redis does not.
func TestRestartsForget(t *testing.T) {
	testenv.Sequential(t)
	for n := range 4 {
		restarts := []string{"instances:restarted@0.25", "instance/0:restarted@0.5", "instances:restarted@0.75"}[:n]
		for policy, list := range map[string]string{"login": "memory-deque", "agent-api": "incr-expire,incr-expire-atomic"} {
			cfg := asking(t, list, policy)
			cfg.Policy.Limit = 50
			cfg.Trouble = trouble.MustParse(append(restarts, "instances:paused=3s@0.6")...)
			report := run(t, cfg)
			for i := range report.Runs {
				r := &report.Runs[i]
				want := int64(0)
				valid(t, r)
				if r.Strategy == "memory-deque" {
					want = int64(50 * n)
				}
				if r.Leak.Units != want || r.Admitted != 50+want {
					t.Errorf("%s, %d restarts: leak %d, %d admitted, want a leak of %d", r.Strategy, n, r.Leak.Units, r.Admitted, want)
				}
				forgets := slices.Contains(r.NotPromised, string(quota.FaultCrash))
				if want := r.Strategy == "memory-deque" && n > 0; forgets != want {
					t.Errorf("%s, %d restarts: not promised under %v, with %v", r.Strategy, n, r.NotPromised, r.Guarantee)
				}
				for _, c := range r.Guarantee {
					if c.Verdict == results.Broken {
						t.Errorf("%s, %d restarts: %+v", r.Strategy, n, c)
					}
				}
			}
		}
	}
}

// A restart ends the calls that are in flight, and those alone, with an error that the audit
// knows. Their callers go on. A call takes 20 ms.
func TestRestartInMidCall(t *testing.T) {
	cfg := config(t, "incr-expire-atomic", "agent-api", "steady")
	cfg.Workers, cfg.Load, cfg.Duration, cfg.Every = 4, harness.Closed(), time.Second, -1
	cfg.RedisNet = legs(10 * time.Millisecond)
	cfg.Stream.Set("over-quota", 0)
	cfg.Trouble = trouble.MustParse("instances:restarted@0.105", "instances:restarted@0.515")
	r := &run(t, cfg).Runs[0]
	valid(t, r)
	if decided := r.Admitted + r.Rejected; r.Errors != 4*2 || decided != 4*(5+20+25) {
		t.Errorf("%d errors and %d decisions", r.Errors, decided)
	}
	if !slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool {
		return x.Code == "planned-errors" && strings.HasPrefix(x.Detail, "8 requests")
	}) {
		t.Errorf("%+v", r.Audit.Reasons)
	}
}

// A process that stands still gets the reply that it waits for afterwards, and then goes on: a
// call is two commands of 20 ms, and those from 480 ms on get their first reply at 1,490 ms. A
// pause within another one adds nothing.
func TestPauseInMidCall(t *testing.T) {
	cfg := config(t, "check-then-set", "agent-api", "steady")
	cfg.Workers, cfg.Load, cfg.Duration, cfg.Every = 4, harness.Closed(), 2*time.Second, -1
	cfg.RedisNet = legs(10 * time.Millisecond)
	cfg.Stream.Set("over-quota", 0)
	cfg.Instances = 2
	cfg.Trouble = trouble.MustParse("instances:paused=1s@0.245", "instance/1:paused=490ms@0.5")
	r := &run(t, cfg).Runs[0]
	valid(t, r)
	if longest := time.Duration(r.Service.Max); longest < 1029*time.Millisecond || longest > 1031*time.Millisecond {
		t.Errorf("a call took %v", longest)
	}
	if r.Errors != 0 || r.Issued != 4*(12+1+13) {
		t.Errorf("%d issued, %d errors", r.Issued, r.Errors)
	}
}

// ticking has a job that notes when its rounds are.
type ticking struct {
	strategies.Strategy
	env    strategies.Env
	rounds *[]time.Duration
}

func (s *ticking) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "tick", Every: time.Second, Run: func(context.Context) (bool, error) {
		*s.rounds = append(*s.rounds, time.Duration(s.env.TrueClock.Now().UnixNano()%int64(time.Minute)))
		return false, nil
	}}}
}

// Jobs stand still with their process, and begin anew with it.
func TestStoppedJobs(t *testing.T) {
	cfg := asking(t, "unlimited", "agent-api")
	meta := *cfg.Strategies[0].Meta
	rounds := []time.Duration{}
	open := meta.Open
	meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		in, err := open(ctx, env)
		return &ticking{in, env, &rounds}, err
	}
	cfg.Strategies = []strategies.Selection{{Meta: &meta}}
	cfg.Duration = 10 * time.Second
	cfg.Trouble = trouble.MustParse("instances:restarted@0.73", "instances:paused=3s@0.15")
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	want := []time.Duration{1e9, 4.5e9, 5e9, 6e9, 7e9, 8.3e9, 9.3e9}
	if len(rounds) < len(want) || !slices.Equal(rounds[:len(want)], want) {
		t.Errorf("rounds at %v, want %v", rounds, want)
	}
}

// Foreign code that counts in its memory begins anew, with the goroutine that it has.
func TestForeignRestarts(t *testing.T) {
	m := strategies.FromFunc("foreign", []quota.Kind{quota.CalendarHour},
		func(context.Context, strategies.Env, *quota.Policy) (strategies.Allower, error) {
			return newHourly(time.Hour, true), nil
		})
	m.Needs = nil
	m.Foreign = true
	cfg := asking(t, "exact", "agent-api")
	cfg.Strategies = []strategies.Selection{{Meta: &m}}
	cfg.Policy.Limit = perHour
	cfg.Trouble = trouble.MustParse("instances:restarted@0.5", "instances:restarted@0.75", "instances:paused=1s@0.2")
	r := &run(t, cfg).Runs[0]
	valid(t, r)
	if r.Leak.Units != 2*perHour {
		t.Errorf("a leak of %d", r.Leak.Units)
	}
}
