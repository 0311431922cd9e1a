package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// While Redis is away strategies do what their sources say: PostgreSQL decides,
// or each process counts for itself, or no request is admitted; and afterwards all is as
// before.
func TestOutage(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "incr-expire,fixed-window,three-tier,three-tier:down=unified,lua-reserve", "agent-api", "steady")
	cfg.Policy.Limit, cfg.Load, cfg.Duration = 1_000, harness.OpenAt(200), 10*time.Second
	cfg.Stream.Set("subjects", 50)
	cfg.Instances = 2
	cfg.Trouble = trouble.MustParse("redis:away@0.3-0.6")
	report := run(t, cfg)
	want := map[string]string{ // the tier that decides while Redis is away
		"fixed-window": "process", "three-tier": "model",
	}
	for i := range report.Runs {
		r := &report.Runs[i]
		s := &report.Series[i]
		valid(t, r)
		share := float64(r.Degraded+r.Errors) / float64(r.Issued)
		if share < 0.25 || share > 0.35 {
			t.Errorf("%s: %.0f %% of decisions were made without Redis, which was away for 30 %%", r.Params.Label, 100*share)
		}
		if len(s.Outages) != 1 || s.Outages[0] != (results.Span{Store: "redis", FromNS: 3e9, ToNS: 6e9}) {
			t.Errorf("%s: outages %+v", r.Params.Label, s.Outages)
		}
		if got := r.Params.Trouble.Strings(); !slices.Equal(got, []string{"redis:away@0.3-0.6"}) {
			t.Errorf("%s: the record says %q", r.Params.Label, got)
		}
		tier, ok := want[r.Params.Label]
		if o := r.Outages; len(o) != 1 || o[0].Admitted > 0 != ok ||
			10*(o[0].Admitted+o[0].Rejected+o[0].Errors) < 9*(r.Degraded+r.Errors) {
			t.Errorf("%s: in the outage %+v, and %d without Redis", r.Params.Label, o, r.Degraded+r.Errors)
		}
		for k, name := range s.Tiers {
			var within, after int64
			for j := 1; j < len(s.Samples); j++ {
				n := s.Samples[j].Hits[k] - s.Samples[j-1].Hits[k]
				switch at := time.Duration(s.Samples[j].AtNS); {
				case at > 3100*time.Millisecond && at < 5900*time.Millisecond:
					within += n
				case at > 6200*time.Millisecond:
					after += n
				}
			}
			if ok && (within > 0) != (name == tier || name == "bloom") {
				t.Errorf("%s: %s made %d decisions while Redis was away", r.Params.Label, name, within)
			}
			if name == "redis" && after == 0 {
				t.Errorf("%s: Redis never came back", r.Params.Label)
			}
		}
	}
}

// A model that is away answers nothing, and what was on its way is lost.
func TestOutageOfTheModel(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "three-tier", "agent-api", "steady")
	cfg.Policy.Limit, cfg.Load, cfg.Duration = 1_000, harness.OpenAt(500), 10*time.Second
	cfg.Stream.Set("subjects", 50)
	cfg.Trouble = trouble.MustParse("postgres:away")
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	for _, tier := range r.Drift.Tiers {
		if tier.Tier == "model" && tier.Drifting == 0 {
			t.Errorf("the model was told of charges: %+v", tier)
		}
	}
}

// A rush happens when it is said to, in addition to the other arrivals.
func TestRush(t *testing.T) {
	testenv.Sequential(t)
	r, err := sim.ParseRush("1000@2026-01-01T00:00:04Z+2s")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sim.ParseRush(r.String()); err != nil || again != r {
		t.Errorf("%v reads back as %v, %v", r, again, err)
	}
	for _, bad := range []string{"", "x", "5@now+1s", "-1@2026-01-01T00:00:04Z+2s", "5@2026-01-01T00:00:04Z",
		"5@2026-01-01T00:00:04Z+0s", "NaN@2026-01-01T00:00:04Z+2s"} {
		if r, err := sim.ParseRush(bad); err == nil {
			t.Errorf("%q is %v", bad, r)
		}
	}
	cfg := config(t, "unlimited", "agent-api", "steady")
	cfg.Load = harness.OpenAt(100)
	cfg.Duration = 10 * time.Second
	cfg.Every = time.Second
	cfg.Rushes = []sim.Rush{r}
	report := run(t, cfg)
	valid(t, &report.Runs[0])
	before := int64(0)
	for _, x := range report.Series[0].Samples {
		at := time.Duration(x.AtNS).Seconds()
		n := x.Issued - before
		before = x.Issued
		if rush := at > 4.5 && at < 6.5; rush && (n < 900 || n > 1300) || !rush && n > 150 {
			t.Errorf("%d requests in the second before %v", n, time.Duration(x.AtNS))
		}
	}
	cfg.Load = harness.Closed()
	if _, err := sim.Run(t.Context(), cfg); err == nil {
		t.Error("a rush in a closed loop is taken")
	}
}

// U4 of ADR-008, a month long: the whole of February passes, and the clocks
// that differ let in at its end what belongs to March.
func TestMonthPreset(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "incr-expire-atomic,incr-expire", "user-links", "steady")
	preset, err := sim.LookupPreset("adr-008-month")
	if err != nil {
		t.Fatal(err)
	}
	if err := preset.Set(&cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Load = harness.OpenAt(0.005)
	cfg.Every = 6 * time.Hour // the rush is what matters
	report := run(t, cfg)
	for i := range report.Runs {
		r := &report.Runs[i]
		valid(t, r)
		if r.Leak.Units < 10 {
			t.Errorf("%s leaks %d units across the end of the month", r.Strategy, r.Leak.Units)
		}
	}
	if a, b := report.Runs[0].Leak.WorstUnits, report.Runs[1].Leak.WorstUnits; a > cfg.Policy.Limit || b < a {
		t.Errorf("worst leak of a user %d with one script and %d with two commands", a, b)
	}
}

// TestFailover: of a hundred requests a second, those of the last second before the master
// died are admitted once more, and no request whose replica had to have the charge.
func TestFailover(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "incr-expire,lua-reserve,redis-wait,exact", "agent-api", "steady")
	cfg.Policy.Limit, cfg.Load, cfg.Arrivals, cfg.Duration = 800, harness.OpenAt(100), "constant", 20*time.Second
	cfg.Stream.Set("subjects", 1)
	cfg.Stream.Set("popularity", "uniform")
	cfg.Stream.Set("over-quota", 0)
	for behind, lost := range map[time.Duration]int64{0: 0, time.Second: 100} {
		cfg.Trouble = trouble.MustParse("redis:failover@0.25-0.251")
		cfg.Trouble[0].What.For = behind
		report := run(t, cfg)
		for i := range report.Runs {
			r := &report.Runs[i]
			valid(t, r)
			want := lost
			if r.Strategy == "redis-wait" || r.Strategy == "exact" {
				want = 0
			}
			if r.Leak.Units != want || r.Leak.Trials != 1 && r.Strategy != "redis-wait" {
				t.Errorf("%s leaks %d of %d admitted behind a replica of %v before, want %d", r.Strategy, r.Leak.Units, r.Admitted,
					behind, want)
			}
			if (len(r.Guarantee) > 0) != (r.Strategy == "exact" || r.Strategy == "redis-wait") {
				t.Errorf("%s is held to %+v", r.Strategy, r.Guarantee)
			}
		}
	}
	cfg.Trouble[0].Where.Name = "postgres"
	if _, err := sim.Run(t.Context(), cfg); err == nil {
		t.Error("a failover of the model is taken")
	}
}

// TestComesBackEmpty: a Redis that has lost its data admits the window's limit once
// more under one strategy, and nothing at all under one whose limits were there, too.
func TestComesBackEmpty(t *testing.T) {
	testenv.Sequential(t)
	admitted := func(empty bool) map[string]int64 {
		cfg := config(t, "incr-expire,lua-reserve", "agent-api", "steady")
		cfg.Policy.Limit, cfg.Load, cfg.Duration = 1_000, harness.OpenAt(500), 12*time.Second
		cfg.Stream.Set("subjects", 1)
		cfg.Stream.Set("popularity", "uniform")
		cfg.Stream.Set("over-quota", 0)
		cfg.Trouble = trouble.MustParse("redis:away@0.1-0.105")
		if empty {
			cfg.Trouble[0].What.Word = trouble.Empty
		}
		n := map[string]int64{}
		report := run(t, cfg)
		for i := range report.Runs {
			r := &report.Runs[i]
			valid(t, r)
			n[r.Strategy] = r.Admitted
			if empty && len(r.Guarantee) > 0 {
				t.Errorf("%s is held to %+v, and it tolerates no eviction", r.Strategy, r.Guarantee)
			}
			if last := r.Params.Trouble[0]; (last.String() == "redis:empty@0.1-0.105") != empty {
				t.Errorf("%s: outage %q", r.Strategy, last)
			}
		}
		return n
	}
	before := admitted(false)
	after := admitted(true)
	// 600 requests come before the outage, and thousands after it.
	if before["incr-expire"] != 1_000 || after["incr-expire"] < 1_500 {
		t.Errorf("incr-expire admits %d, and %d where Redis comes back empty: want the limit, and the limit once more",
			before["incr-expire"], after["incr-expire"])
	}
	if before["lua-reserve"] < 1_000 || after["lua-reserve"] > 700 {
		t.Errorf("lua-reserve admits %d, and %d where Redis comes back empty: want the limit, and nothing more",
			before["lua-reserve"], after["lua-reserve"])
	}
}
