package sim_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// repeats is how often what is to be the same is tried; more if asked for.
func repeats(n int) int {
	if v, err := strconv.Atoi(os.Getenv("QUOTABENCH_REPEATS")); err == nil {
		return v
	}
	return n
}

// U4 of ADR-008: keys that expire reset a month by themselves, for every
// length of a month; but an instance whose clock is ahead begins the new month
// early, and grants in the old one what belongs to the new. incr-expire grants
// the limit once more: the time to live is reckoned by the clock that is ahead,
// so the old month's key goes before the month does.
func TestMonthEnds(t *testing.T) {
	testenv.Sequential(t)
	most := map[string]int64{"incr-expire": 2, "incr-expire-atomic": 1}
	ends := []time.Time{
		time.Date(2028, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, end := range testenv.Pick(ends[:2], ends) {
		for _, skew := range []time.Duration{0, 2 * time.Second} {
			cfg := config(t, "incr-expire,incr-expire-atomic", "user-links", "steady")
			cfg.Start, cfg.Duration, cfg.Load, cfg.Every = end.Add(-15*time.Second), 30*time.Second, harness.OpenAt(100), -1
			cfg.Stream.Set("subjects", 10)
			cfg.Stream.Set("over-quota", 0)
			cfg.Instances, cfg.Trouble = 2, trouble.List{trouble.ClockAhead(1, skew)}
			report := run(t, cfg)
			for i := range report.Runs {
				r := &report.Runs[i]
				valid(t, r)
				switch {
				case skew == 0 && (r.Leak.Units != 0 || r.Leak.Trials != 20):
					t.Errorf("%s at %v: leak %d in %d crossings, want 0 in 20", r.Strategy, end, r.Leak.Units, r.Leak.Trials)
				case skew > 0 && (r.Leak.Units == 0 || r.Leak.WorstUnits > most[r.Strategy]*r.Params.Limit):
					t.Errorf("%s at %v, clocks %v apart: leak %d, worst %d", r.Strategy, end, skew, r.Leak.Units, r.Leak.WorstUnits)
				}
				if r.FalseRejects.Count > 0 && skew == 0 {
					t.Errorf("%s at %v: %d false rejects", r.Strategy, end, r.FalseRejects.Count)
				}
			}
		}
	}
}

// TestClockSteps plants leaks: 3 s after a month's end a clock steps back to before that, where the old month has units
// left, and forward into a month that nobody has asked in yet. By its own clock nothing leaks.
func TestClockSteps(t *testing.T) {
	testenv.Sequential(t)
	var before int64 // the month's end
	for _, c := range []struct {
		step time.Duration
		leak func() int64
	}{
		{0, func() int64 {
			return 0
		}}, {-10 * time.Second, func() int64 { return 50 - before }}, {31 * 24 * time.Hour, func() int64 { return 50 }},
	} {
		cfg := config(t, "incr-expire-atomic", "user-links", "steady")
		cfg.Start, cfg.Duration, cfg.Load, cfg.Every = time.Date(2026, 2, 28, 23, 59, 59, 8e8, time.UTC), 30*time.Second,
			harness.OpenAt(100), -1
		cfg.Policy.Limit = 5
		cfg.Stream.Set("subjects", 10)
		cfg.Stream.Set("over-quota", 0)
		cfg.Instances, cfg.Trouble = 1, trouble.MustParse("instances:clock="+c.step.String()+"@0.1")
		r := &run(t, cfg).Runs[0]
		valid(t, r)
		if c.step == 0 {
			before = r.Admitted - 50
		}
		want := c.leak()
		if r.Leak.Units != want || r.Leak.Possible != want || r.Admitted != before+50+want || before < 10 || before > 30 {
			t.Errorf("a step of %v: a leak of %d to %d and %d admitted, %d before the end, want a leak of %d", c.step,
				r.Leak.Units,
				r.Leak.Possible, r.Admitted, before, want)
		}
		for _, g := range r.Guarantee {
			if g.Property == string(quota.PropertyLeak) && g.Certain != 0 {
				t.Errorf("a step of %v: by its own clock it is held to %+v", c.step, g)
			}
		}
	}
}

// The exact control goes by true time, whatever the clocks of its instances say.
func TestExactHasOneClock(t *testing.T) {
	for wrong := range 2 {
		exactHasOneClock(t, wrong)
	}
}

func exactHasOneClock(t *testing.T, wrong int) {
	t.Helper()
	cfg := config(t, "exact", "user-links", "steady")
	cfg.Start, cfg.Duration, cfg.Load, cfg.Every = time.Date(2026, 2, 28, 23, 59, 45, 0, time.UTC), 30*time.Second,
		harness.OpenAt(100), -1
	cfg.Stream.Set("subjects", 10)
	cfg.Instances, cfg.Trouble = 2, trouble.List{trouble.ClockAhead(wrong, 2*time.Second)}
	r := &run(t, cfg).Runs[0]
	valid(t, r)
	if r.Leak.Units != 0 || r.Leak.Trials == 0 || len(r.Guarantee) == 0 {
		t.Fatalf("leak %d in %d trials, %d clauses", r.Leak.Units, r.Leak.Trials, len(r.Guarantee))
	}
	for _, c := range r.Guarantee {
		if c.Verdict != results.Kept {
			t.Errorf("%s is %s: %d where %d are allowed", c.Property, c.Verdict, c.Certain, c.Bound)
		}
	}
}

// A month of calls leaves no key behind that its window has outlived.
func TestKeysExpireInVirtualTime(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "incr-expire,incr-expire-atomic,decr-literal", "agent-api", "steady")
	cfg.Load = harness.OpenAt(0.01)
	cfg.Duration = 72 * time.Hour
	cfg.Stream.Set("subjects", 50)
	report := run(t, cfg)
	for i := range report.Runs {
		r := &report.Runs[i]
		if lives := r.Cost.KeysAtEnd > 60; lives != (r.Strategy == "decr-literal") {
			t.Errorf("%s leaves %d keys, %d without an end", r.Strategy, r.Cost.KeysAtEnd, r.Cost.KeysWithoutTTL)
		}
	}
}

// The series and the verdict come from different books.
func TestSeriesEndsWhereTheVerdictIs(t *testing.T) {
	testenv.Sequential(t)
	for _, workload := range []string{"steady", "uploads"} {
		policy := "agent-api"
		list := "check-then-set,three-tier,unlimited,exact"
		if workload == "uploads" {
			policy = "tenant-uploads"
			list = "lua-reserve,exact,unlimited"
		}
		cfg := config(t, list, policy, workload)
		cfg.Load = harness.OpenAt(500)
		cfg.Duration = 4 * time.Second
		if workload == "steady" {
			cfg.Policy.Limit = 30
			cfg.Stream.Set("subjects", 40)
		}
		report := run(t, cfg)
		for i := range report.Runs {
			r := &report.Runs[i]
			s := report.Series[i].Samples
			valid(t, r)
			if len(s) < 280 {
				t.Fatalf("%s: %d samples", r.Strategy, len(s))
			}
			last := s[len(s)-1]
			if workload == "steady" && (last.Leak > r.Leak.Units || last.Leak < r.Leak.Units*9/10) {
				t.Errorf("%s: %d leaked by the series, %d by the verdict", r.Strategy, last.Leak, r.Leak.Units)
			}
			if r.Strategy == "exact" && (last.Leak != 0 || last.FalseRejects != 0 || r.Leak.Units != 0) {
				t.Errorf("the exact control leaks: %+v", last)
			}
			for _, c := range last.Counters {
				if r.Strategy == "exact" && c.Drifting > 0 {
					t.Errorf("the exact control drifts: %+v", c)
				}
			}
			if r.Strategy == "unlimited" && workload == "steady" && r.Leak.Units == 0 {
				t.Errorf("unlimited leaks nothing under %s", workload)
			}
		}
	}
}

// Staleness is how old what a tier says is: a cache that no caller asks anew
// falls behind by as much time as passes.
func TestStalenessGrowsWithTheWriteBackQueue(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "three-tier", "agent-tokens", "steady")
	cfg.Load = harness.OpenAt(50)
	cfg.Duration = 40 * time.Second
	cfg.Tracked = 20
	cfg.Stream.Set("subjects", 20)
	cfg.PostgresNet = &sim.Network{Servers: 16,
		Service: sim.Table{{PPM: 0, At: 400 * time.Millisecond}, {PPM: 1e6, At: 400 * time.Millisecond}}}
	r := run(t, cfg)
	valid(t, &r.Runs[0])
	if r.Runs[0].Drift == nil || len(r.Series[0].Counters) != 2 {
		t.Fatalf("counters %v", r.Series[0].Counters)
	}
	var worst [2]int64 // redis, model
	for _, x := range r.Series[0].Samples {
		for k, name := range r.Series[0].Counters {
			i := 0
			if name == "model" {
				i = 1
			}
			worst[i] = max(worst[i], x.Counters[k].StalenessNS)
		}
	}
	if time.Duration(worst[1]) < 400*time.Millisecond || worst[0] > worst[1] {
		t.Errorf("staleness of redis %v, of the model behind a slow queue %v", time.Duration(worst[0]),
			time.Duration(worst[1]))
	}
}

// The racy strategies leak more the longer their store takes to answer.
func TestSlowerStoresLeakMore(t *testing.T) {
	testenv.Sequential(t)
	leak := func(leg time.Duration) int64 {
		cfg := config(t, "check-then-set", "agent-api", "hot-key")
		cfg.Policy.Limit = 50
		cfg.Requests = testenv.Pick[int64](6_000, 20_000)
		cfg.Load = harness.OpenAt(20_000)
		cfg.RedisNet = &sim.Network{Servers: 1, Request: sim.Table{{0, leg}, {1e6, leg}},
			Reply: sim.Table{{0, leg}, {1e6, leg}}}
		r := run(t, cfg)
		valid(t, &r.Runs[0])
		return r.Runs[0].Leak.Units
	}
	fast := leak(0)
	slow := leak(500 * time.Microsecond)
	if slow < 100*max(fast, 1) {
		t.Errorf("leak %d without latency and %d with", fast, slow)
	}
}

// One command per decision, wherever its Redis is; and a promise about one Redis
// is not checked against several.
func TestRegionsCountForThemselves(t *testing.T) {
	testenv.Sequential(t)
	for _, shared := range []bool{false, true} {
		cfg := config(t, "incr-expire-atomic", "agent-api", "steady")
		cfg.Policy.Limit, cfg.Load, cfg.Duration = 20, harness.OpenAt(500), 2*time.Second
		cfg.Stream.Set("subjects", 10)
		cfg.Topology = sim.Topology{Regions: []string{"us-east-1", "eu-west-1", "ap-southeast-1"}, SharedRedis: shared}
		r := run(t, cfg).Runs[0]
		valid(t, &r)
		if r.Cost.Commands != 1 {
			t.Errorf("shared %v: %g commands per decision", shared, r.Cost.Commands)
		}
		left := slices.Contains(r.NotPromised, codes.SeveralRegions)
		if leaks := r.Leak.Units > 0; leaks == shared || (len(r.Guarantee) > 0) != shared || left == shared {
			t.Errorf("shared %v: leak %d, clauses %v, not promised under %v", shared, r.Leak.Units, r.Guarantee, r.NotPromised)
		}
		if p50 := time.Duration(r.Service.P90); shared != (p50 > 80*time.Millisecond) {
			t.Errorf("shared %v: p90 %v", shared, p50)
		}
	}
}

func TestCompleteRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*sim.Config){
		"no strategy":   func(c *sim.Config) { c.Strategies = nil },
		"no workload":   func(c *sim.Config) { c.Workload = nil },
		"negative rate": func(c *sim.Config) { c.Load = harness.OpenAt(-1) },
		"a step of no duration": func(c *sim.Config) {
			c.Duration, c.Requests, c.Trouble = 0, 10, trouble.MustParse("instances:clock=0s@0.5")
		},
		"too many clocks": func(c *sim.Config) { c.Trouble = trouble.List{trouble.ClockAhead(1, 0)} },
		"far too long":    func(c *sim.Config) { c.Duration = 1 << 62 },
		"home":            func(c *sim.Config) { c.Topology.Home = 2 },
	} {
		cfg := config(t, "incr-expire", "agent-api", "steady")
		spoil(&cfg)
		if _, err := sim.Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A database that lags is behind, and not ahead, though its backlog drains only after the window
// has turned: counters at rest belong to the window that was counted.
func TestDriftIsOfItsWindow(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "three-tier", "agent-api", "steady")
	cfg.Start, cfg.Duration, cfg.Load, cfg.Every = time.Date(2026, 1, 1, 0, 59, 50, 0, time.UTC), 9*time.Second,
		harness.OpenAt(1000), -1
	cfg.Stream.Set("subjects", 5)
	r := &run(t, cfg).Runs[0]
	valid(t, r)
	var model int64
	for _, x := range r.Drift.Tiers {
		if x.Tier == "model" {
			model = x.Units
		}
		if x.At == "after-jobs" {
			t.Errorf("read after the window has turned: %+v", x)
		}
	}
	if model >= 0 {
		t.Errorf("the model of PostgreSQL is off by %+d units at rest, want less than 0", model)
	}
}
