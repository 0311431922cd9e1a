package localsync

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// simulate has instances share one subject's limit of 1,090 in a window of a minute, at 50
// requests per second that come at even distances.
func simulate(t *testing.T, strategy string, instances int, events ...string) results.Run {
	t.Helper()
	r := simulated(t, strategy, func(c *sim.Config) { c.Instances, c.Trouble = instances, trouble.MustParse(events...) })
	kept(t, &r)
	return r
}

// simulated is that with something changed.
func simulated(t *testing.T, strategy string, change func(*sim.Config)) results.Run {
	t.Helper()
	testenv.Sequential(t)
	plan, err := harness.NewPlan(strategy, "1090 requests per fixed 1m", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Seed, plan.Load, plan.Arrivals, plan.Duration = 1, harness.OpenAt(50), "constant", 55*time.Second
	plan.Stream.Set("subjects", 1)
	c := sim.Config{Plan: plan}
	change(&c)
	report, err := sim.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return report.Runs[0]
}

// kept requires that no clause is broken.
func kept(t *testing.T, r *results.Run) {
	t.Helper()
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			t.Errorf("%s on %d instances breaks %+v", r.Params.Label, r.Params.Instances, c)
		}
	}
}

// figure is a measure of the strategy's own.
func figure(t *testing.T, r *results.Run, name string) int64 {
	t.Helper()
	for _, m := range r.Meter {
		if m.Name == name {
			return m.Value
		}
	}
	t.Fatalf("no figure is called %s among %+v", name, r.Meter)
	return 0
}

// TestLeakGrows: the leak grows with the period and with the instances. It is at most what the
// others have admitted in two periods, and 0 if every request asks or there are no others.
func TestLeakGrows(t *testing.T) {
	for _, c := range []struct {
		what string
		runs []string // period, instances
	}{
		{"period", []string{"0s 4", "200ms 4", "1s 4", "4s 4", "15s 4", "30s 4"}},
		{"instances", []string{"4s 1", "4s 2", "4s 4", "4s 8"}},
	} {
		last := int64(-1)
		for _, run := range c.runs {
			var instances int
			var period string
			if _, err := fmt.Sscan(run, &period, &instances); err != nil {
				t.Fatal(err)
			}
			r := simulate(t, "local-sync:period="+period, instances)
			leak := r.Leak.Units
			t.Logf("period %s, %d instances: %d over the limit", period, instances, leak)
			if leak <= last || (last < 0) != (leak == 0) {
				t.Errorf("period %s, %d instances: %d over the limit, after %d with less", period, instances, leak, last)
			}
			if most := 2 * int64(instances-1) * figure(t, &r, "unsynced, most"); leak > most {
				t.Errorf("period %s, %d instances: %d over the limit, and the others admitted %d in two periods", period, instances,
					leak, most)
			}
			last = leak
		}
	}
}

// TestOutage: what is admitted while Redis is away reaches it afterwards, or is lost. Both are
// seen in the count.
func TestOutage(t *testing.T) {
	for _, lost := range []string{"again", "drop"} {
		r := simulate(t, "local-sync:lost="+lost, 2, "redis:away@0.1-0.2")
		dropped := figure(t, &r, "dropped")
		if (dropped > 0) != (lost == "drop") || (figure(t, &r, "repeated") > 0) != (lost == "again") {
			t.Errorf("lost=%s: %+v", lost, r.Meter)
		}
		for _, d := range r.Drift.Tiers {
			if d.Units != -dropped {
				t.Errorf("lost=%s: %+v, and %d units were dropped", lost, d, dropped)
			}
		}
		if len(r.Drift.Tiers) != 2 {
			t.Errorf("lost=%s: %+v", lost, r.Drift)
		}
	}
}

// TestBound: the leak is at most what the run admitted in two periods, which itself is near to that.
func TestBound(t *testing.T) {
	for _, period := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		for _, instances := range []int64{2, 4, 16} {
			r := simulate(t, fmt.Sprintf("local-sync:period=%v", period), int(instances))
			// 50 requests a second, and as many as come within a round trip and at either end.
			bound := r.Guarantee[0].Bound
			most := min(int64(100*period.Seconds())+3, 1090*(instances-1))
			t.Logf("period %v, %d instances: leak %d, bound %d", period, instances, r.Leak.Units, bound)
			if bound > most || bound < most-3 || r.Leak.Units == 0 {
				t.Errorf("period %v, %d instances: the leak is %d and its bound %d, want about %d", period, instances, r.Leak.Units,
					bound, most)
			}
		}
	}
}

// forgetful tells Redis of every second period alone.
type forgetful struct {
	*localSync
	rounds int
}

func (f *forgetful) Jobs() []strategies.Job {
	return []strategies.Job{{Name: jobSync, Every: f.period, Run: func(ctx context.Context) (bool, error) {
		f.rounds++
		if f.rounds%2 == 0 {
			f.forget()
		}
		return f.sync(ctx)
	}}}
}

// TestForgetfulIsFound: it leaks less than the limit, and more than what comes in two periods.
func TestForgetfulIsFound(t *testing.T) {
	m := *testkit.Strategy(t, "local-sync").Meta
	open := m.Open
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := open(ctx, env)
		return &forgetful{localSync: s.(*localSync)}, err
	}
	r := simulated(t, "local-sync", func(c *sim.Config) {
		c.Instances = 2
		c.Strategies[0].Meta = &m
	})
	broken := 0
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			broken++
		}
	}
	if c := r.Guarantee[0]; c.Verdict != results.Broken || broken != 1 || c.Certain >= 1090 {
		t.Errorf("%+v", r.Guarantee)
	}
}

// TestBehindRedis: an instance whose window is over by Redis' clock hears nothing more of others, and admits nothing
// more.
func TestBehindRedis(t *testing.T) {
	r := simulated(t, "local-sync:period=200ms", func(c *sim.Config) {
		c.Instances, c.Trouble = 2, trouble.List{trouble.ClockAhead(0, -40*time.Second),
			trouble.ClockAhead(1, 1-40*time.Second)}
	})
	kept(t, &r)
	if r.Degraded < 1000 {
		t.Errorf("%d degraded decisions", r.Degraded)
	}
}
