package measure

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// planted is a strategy with known faults, right in everything else. What the
// harness reports must be what was planted.
type planted struct {
	mu       sync.Mutex
	used     map[quota.Subject]int64
	seen     map[quota.Subject]int64
	leak     int64                     // units admitted over each limit
	rejectNo func(seen int64) bool     // wrongly rejects a subject's n-th request, from 1
	drift    int64                     // added to what it shows
	delay    func(ctx context.Context) // of each decision
	errorNo  func(total int64) error   // error instead of the n-th decision
	total    int64                     // requests, warm-up left out
}

func (p *planted) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	p.mu.Lock()
	if r.ID < bounds.WarmUpID {
		p.total++
	}
	p.mu.Unlock()
	if p.delay != nil {
		p.delay(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.errorNo != nil && r.ID < bounds.WarmUpID {
		if err := p.errorNo(p.total); err != nil {
			return quota.Decision{}, err
		}
	}
	p.seen[r.Subject]++
	d := quota.Decision{Tier: quota.TierProcess}
	if p.rejectNo != nil && p.rejectNo(p.seen[r.Subject]) {
		return d, nil
	}
	if p.used[r.Subject]+r.Units <= r.Policy.Limit+p.leak {
		p.used[r.Subject] += r.Units
		d.Admitted = true
	}
	return d, nil
}

func (p *planted) Close(context.Context) error { return nil }

func (p *planted) Used(_ context.Context, s quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []quota.Reading{{Tier: quota.TierProcess, Units: p.used[s] + p.drift, Known: true}}, nil
}

func (p *planted) selection() strategies.Selection {
	p.used = map[quota.Subject]int64{}
	p.seen = map[quota.Subject]int64{}
	return strategies.Selection{Meta: &strategies.Meta{
		Name: "planted", Doc: "has known faults", Form: strategies.Baseline, Counts: quota.CountsAdmitted,
		Kinds: []quota.Kind{quota.Standing, quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed,
			quota.Rolling},
		Guarantee: []quota.Clause{quota.Exactly()},
		Open:      func(context.Context, strategies.Env) (strategies.Strategy, error) { return p, nil },
	}}
}

// virtual is a clock that stands still until it is moved, except for the
// nanosecond that reading it takes: no two moments are the same.
type virtual struct {
	mu  sync.Mutex
	now int64
}

func (v *virtual) advance(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now += int64(d)
}

func (v *virtual) timebase() *timebase {
	start := time.Date(2026, time.March, 15, 12, 0, 0, 0, time.UTC)
	nano := func() int64 { v.mu.Lock(); defer v.mu.Unlock(); v.now++; return v.now }
	return &timebase{
		nano: nano, time: func(n int64) time.Time { return start.Add(time.Duration(n)) },
		clock: wallTime.clock,
	}
}

// measureOne runs one strategy sequentially on a clock that every request moves
// by a microsecond, and returns its only run.
func measureOne(t *testing.T, p *planted, workload string, change func(*Config)) results.Run {
	t.Helper()
	v := &virtual{}
	if p.delay == nil {
		p.delay = func(context.Context) { v.advance(time.Microsecond) }
	}
	policy := testkit.Policy(t, "user-links")
	w, err := workloads.Lookup(workload)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Plan: harness.Plan{
			Strategies: []strategies.Selection{p.selection()}, Policy: policy,
			Traffic: harness.Traffic{Workload: w, Requests: 4000},
			Workers: 1, Seed: 7,
		},
		Rounds: 1, base: v.timebase(),
	}
	if change != nil {
		change(&cfg)
	}
	report, err := Measure(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs, want 1", len(report.Runs))
	}
	return report.Runs[0]
}

func requireValid(t *testing.T, r results.Run) {
	t.Helper()
	for _, reason := range r.Audit.Reasons {
		if !ofMachine(reason) {
			t.Fatalf("audit: %+v", r.Audit)
		}
	}
}

// ofMachine reports whether a finding is about what else the machine does, which a test
// cannot decide.
func ofMachine(r results.Reason) bool {
	return slices.Contains([]string{codes.DiscardsRound, codes.Disturbs, codes.DiscardsNothing}, r.Discards)
}

func TestPlantedNothing(t *testing.T) {
	r := measureOne(t, &planted{}, "hot-key", nil)
	requireValid(t, r)
	if r.Issued != 4000 || r.Admitted != 2000 || r.Rejected != 2000 || r.Errors != 0 {
		t.Errorf("issued %d, admitted %d, rejected %d, errors %d", r.Issued, r.Admitted, r.Rejected, r.Errors)
	}
	if r.Leak.Units != 0 || r.Leak.Possible != 0 || r.Leak.Trials != 100 {
		t.Errorf("leak %+v", r.Leak)
	}
	if r.FalseRejects.Count != 0 || r.FalseRejects.Possible != 0 {
		t.Errorf("false rejects %+v", r.FalseRejects)
	}
	if r.Drift == nil || r.Drift.Units != 0 || r.Drift.Tiers[0].Drifting != 0 || r.Drift.Tiers[0].Readings != 100 {
		t.Errorf("drift %+v", r.Drift)
	}
	if len(r.Guarantee) != 1 || r.Guarantee[0].Verdict != results.Kept {
		t.Errorf("guarantee %+v", r.Guarantee)
	}
}

func TestPlantedLeakOfSeven(t *testing.T) {
	r := measureOne(t, &planted{leak: 7}, "hot-key", nil)
	requireValid(t, r)
	l := r.Leak
	if l.Units != 700 || l.Possible != 700 || l.WorstUnits != 7 || l.MedianUnits != 7 || l.Subjects != 100 ||
		l.LeakedTrials != 100 || l.Trials != 100 {
		t.Errorf("leak %+v, want 7 units in each of 100 crossings", l)
	}
	if l.PctOfLimit != 35 || l.PctOfOverQuota != 35 { // 7 of 20, and of the 20 asked over the limit
		t.Errorf("leak is %v %% of the limit and %v %% of the excess, want 35 of both", l.PctOfLimit, l.PctOfOverQuota)
	}
	if r.Guarantee[0].Verdict != results.Broken || r.Guarantee[0].Certain != 7 {
		t.Errorf("guarantee %+v", r.Guarantee)
	}
}

func TestPlantedFalseRejects(t *testing.T) {
	// Of 50 requests that fit, the 25th is rejected: 1 of 50 is 2 %.
	p := &planted{rejectNo: func(n int64) bool { return n == 25 }}
	r := measureOne(t, p, "hot-key", func(c *Config) { c.Policy.Limit = 49; c.Requests = 9800 })
	requireValid(t, r)
	if f := r.FalseRejects; f.Count != 100 || f.Possible != 100 || f.Units != 100 || f.PctOfValid != 2 {
		t.Errorf("false rejects %+v, want 100, which is 2 %%", f)
	}
}

func TestPlantedDrift(t *testing.T) {
	r := measureOne(t, &planted{drift: -3}, "hot-key", nil)
	requireValid(t, r)
	d := r.Drift
	if d.Units != -3 || d.PctOfLimit != -15 || d.PctOfUsage != -15 {
		t.Errorf("drift %+v, want -3 of 20", d)
	}
	if x := d.Tiers[0]; x.Tier != "process" || x.At != "rest" || x.Units != -3 || x.Total != 300 || x.Drifting != 100 ||
		x.Width != 0 {
		t.Errorf("drift of the tier %+v", x)
	}
}

func TestPlantedDelay(t *testing.T) {
	v := &virtual{}
	p := &planted{delay: func(context.Context) { v.advance(5 * time.Millisecond) }}
	r := measureOne(t, p, "hot-key", func(c *Config) { c.base = v.timebase() })
	requireValid(t, r)
	for name, ns := range map[string]int64{"p50": r.Service.P50, "p99": r.Service.P99, "max": r.Service.Max} {
		if ns < 5_000_000 || ns > 5_005_000 { // three digits
			t.Errorf("%s is %d ns, want 5 ms", name, ns)
		}
	}
	if r.ThroughputPerS > 200 || r.ThroughputPerS < 199.99 {
		t.Errorf("%v decisions/s, want 200", r.ThroughputPerS)
	}
}

// Under load the same amounts are the least that may be reported.
func TestPlantedUnderLoad(t *testing.T) {
	testenv.Sequential(t)
	p := &planted{
		leak: 7, drift: -3,
		rejectNo: func(n int64) bool { return n == 5 },
		delay:    func(ctx context.Context) { _ = wallTime.clock.Sleep(ctx, 5*time.Millisecond) },
	}
	r := measureOne(t, p, "hot-key", func(c *Config) {
		c.base = nil
		c.Workers = 40
		c.Requests = 2000
	})
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Leak.Units < 7*r.Leak.Trials || r.Leak.Trials != 50 {
		t.Errorf("leak %+v, want at least 7 in each of 50 crossings", r.Leak)
	}
	// A request overlaps with as many as there are workers, so the 5th of a
	// subject cannot be certain to have had room; it is possible.
	if r.FalseRejects.Possible < 50 {
		t.Errorf("false rejects %+v, want 50 possible ones", r.FalseRejects)
	}
	if r.Drift.Units != -3 {
		t.Errorf("drift %+v, want -3", r.Drift)
	}
	if r.Service.P50 < 5_000_000 {
		t.Errorf("p50 is %d ns, want at least 5 ms", r.Service.P50)
	}
}

func TestRunsNeverShowCountsOfWarmUp(t *testing.T) {
	r := measureOne(t, &planted{}, "hot-key", func(c *Config) {
		c.Workers = 8
		c.base = nil
	})
	requireValid(t, r)
	if r.Issued != 4000 {
		t.Errorf("issued %d of 4000", r.Issued)
	}
}
