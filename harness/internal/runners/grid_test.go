//go:build !mutants

package runners_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

// TestGrid runs every exact control under every kind of window in every mode, with
// refunds and commits during and after the window. A control leaks nothing, rejects
// nothing wrongly, drifts by nothing and strands nothing; if a figure says that
// it does, the figure is wrong. A new mode or kind fails until it has its cell.
func TestGrid(t *testing.T) {
	controls := 0
	for _, m := range strategies.All() {
		if m.Control != strategies.ControlExact {
			continue
		}
		controls++
		for _, kind := range quota.Kinds() {
			for _, mode := range strategies.Modes() {
				t.Run(fmt.Sprintf("%s/%s/%s", m.Name, kind, mode), func(t *testing.T) {
					if mode != strategies.ModeMeasure {
						testenv.Sequential(t)
					}
					cell(t, m, kind, mode)
				})
			}
		}
	}
	if controls == 0 {
		t.Fatal("no exact control is registered")
	}
}

// gridLength is that of windows that have a length: a few of them pass in a run.
const gridLength = 50 * time.Millisecond

func gridPolicy(kind quota.Kind) quota.Policy {
	p := quota.Policy{Name: "grid", Limit: 12, Unit: "units", Window: quota.Window{Kind: kind}, Costs: []int64{1, 2, 3},
		Hold: time.Minute}
	if kind.HasLength() {
		p.Window.Length = gridLength
	}
	if kind == quota.Bucket {
		p.Window.Refill = p.Limit
	}
	return p
}

func cell(t *testing.T, m *strategies.Meta, kind quota.Kind, mode strategies.Mode) {
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := harness.Plan{
		Strategies: []strategies.Selection{sel}, Policy: gridPolicy(kind),
		Traffic: harness.Traffic{Workload: sessions(kind), Load: harness.OpenAt(20_000), Duration: 6 * gridLength},
		Workers: 8, Instances: 2, Seed: 5, Callers: harness.Callers{Life: 2 * gridLength},
	}
	switch mode {
	case strategies.ModeMeasure:
		// On a busy machine a short run may have nothing of a kind that is required.
		for plan.Duration = testenv.Pick[time.Duration](3, 6) * gridLength; ; plan.Duration *= 2 {
			report, err := measure.Measure(t.Context(), measure.Config{Plan: plan, Rounds: 1, NoReference: true})
			if err != nil {
				t.Fatal(err)
			}
			if r := &report.Runs[0]; shows(r) || plan.Duration > time.Minute {
				exactly(t, r)
				return
			}
		}
	case strategies.ModeSimulate:
		report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		exactly(t, &report.Runs[0])
		series(t, report)
	case strategies.ModeExplore:
		explored(t, sel, kind)
	default:
		t.Fatalf("the grid has no cell for the mode %s", mode)
	}
}

// shows reports whether a run gave back, limited and let time pass enough to find something.
func shows(r *results.Run) bool {
	s := r.Settlement
	return r.Rejected > 0 && r.Leak.Trials > 0 && s.Commits > 0 && s.Refunds > 0 && s.Abandoned > 0
}

// clean requires a run that counts and found nothing, and that shows something.
func clean(t *testing.T, r *results.Run) {
	t.Helper()
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if r.Leak.Units != 0 || r.FalseRejects.Count != 0 {
		t.Errorf("leak %+v, false rejects %+v", r.Leak, r.FalseRejects)
	}
	if r.Drift == nil {
		t.Fatal("no counter was read")
	}
	for _, tier := range r.Drift.Tiers {
		if tier.Readings == 0 || tier.Drifting != 0 {
			t.Errorf("drift at %s: %+v", tier.At, tier)
		}
	}
	if !shows(r) {
		t.Errorf("%d rejected, %d trials, settlement %+v: the run shows nothing", r.Rejected, r.Leak.Trials, r.Settlement)
	}
}

// exactly requires that of a run in which every settlement did what it was told.
func exactly(t *testing.T, r *results.Run) {
	t.Helper()
	clean(t, r)
	if r.Settlement.Errors != 0 {
		t.Errorf("settlement %+v", r.Settlement)
	}
}

// series requires that the series of a simulation found nothing either, at any moment.
func series(t *testing.T, r *sim.Report) {
	t.Helper()
	for _, x := range r.Series[0].Samples {
		if x.Leak != 0 || x.FalseRejects != 0 {
			t.Fatalf("the series has a leak of %d and %d false rejects after %v", x.Leak, x.FalseRejects, time.Duration(x.AtNS))
		}
		for i, c := range x.Counters {
			if c.Drifting != 0 {
				t.Fatalf("the series has a drift of %s after %v: %+v", r.Series[0].Counters[i], time.Duration(x.AtNS), c)
			}
		}
	}
}

// explored searches with a client that gives back during and, as the clock ticks,
// after the window.
func explored(t *testing.T, sel strategies.Selection, kind quota.Kind) {
	t.Helper()
	take := explore.Action{Kind: explore.Take, Units: 1}
	cfg := explore.Config{
		Policy: gridPolicy(kind), Limit: 2, Clients: 2, Instances: 2, Faults: []quota.Fault{quota.FaultClock},
		Scripts: []explore.Script{
			{take, {Kind: explore.Commit}, {Kind: explore.Refund}, take},
			{{Kind: explore.Take, Units: 2}, {Kind: explore.Commit, Units: 1}},
		},
	}
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Capped != "" || len(r.Findings) > 0 {
		t.Errorf("capped %q, findings %+v", r.Capped, r.Findings)
	}
}

// sessions asks for a few subjects from many callers at once. Every request is
// committed, fails or is abandoned, and what is committed is deleted later: some of
// it within the window of its take, some of it after that.
func sessions(kind quota.Kind) *workloads.Meta {
	return &workloads.Meta{
		Name: "grid", Doc: "sessions around the end of a window", Loop: workloads.Closed, GivesBack: true,
		// A window ends in mid-run if windows follow each other.
		Boundary: kind.Tumbling(),
		Make: func(p workloads.Params) (workloads.Stream, workloads.Info, error) {
			return sessionStream{}, workloads.Info{Loop: workloads.Closed}, nil
		},
	}
}

type sessionStream struct{}

func (sessionStream) Len() int64           { return 0 }
func (sessionStream) Subjects() int        { return 3 }
func (sessionStream) Name(n uint32) string { return fmt.Sprintf("subject-%d", n) }

func (sessionStream) At(i int64, op *workloads.Op) {
	n := uint64(i) * 0x9E3779B97F4A7C15 >> 32
	*op = workloads.Op{Subject: uint32(n % 3), Units: 1 + int64(n/3%3),
		Settle: time.Duration(n/9%4_000) * time.Microsecond}
	switch n / 7 % 10 {
	case 0:
		op.Fate = workloads.FateAbandon
	case 1, 2:
		op.Fate = workloads.FateFail
	default:
		op.Fate = workloads.FateCommit
		op.Actual = 1 + int64(n/11%3)
		op.Hold = time.Duration(n/13%60_000) * time.Microsecond
	}
}

// unsure is an exact control of which one commit in four waits until the life of its reservation is over, one
// fails and does nothing, and one fails although it did what it was told. One refund in eight fails and does nothing.
type unsure struct {
	control
	clock quota.Clock
	life  time.Duration
	late  *atomic.Int64
}

type control interface {
	strategies.Strategy
	strategies.Refunder
	strategies.Committer
	strategies.Viewer
}

func (u unsure) Commit(ctx context.Context, r quota.Reservation, actual int64) error {
	switch r.Request.ID % 4 {
	case 0:
		u.late.Add(1)
		if err := u.clock.Sleep(ctx, u.life); err != nil {
			return err
		}
	case 1:
		return errors.New("planted, without an effect")
	case 2:
		return cmp.Or(u.control.Commit(ctx, r, actual), errors.New("planted, with an effect"))
	}
	return u.control.Commit(ctx, r, actual)
}

func (u unsure) Refund(ctx context.Context, r quota.Reservation) error {
	if r.Request.ID%8 == 3 {
		return errors.New("planted, without an effect")
	}
	return u.control.Refund(ctx, r)
}

// TestUnsureCommits: a control that is told of a commit when it has let the reservation end, or never, gives the units
// to others. It is accused of nothing: what such a commit did is open from the end of the life on.
func TestUnsureCommits(t *testing.T) {
	exact := testkit.Strategy(t, "exact").Meta
	for _, kind := range []quota.Kind{quota.Standing, quota.Fixed, quota.Rolling, quota.Bucket, quota.FirstRequest} {
		for _, mode := range []strategies.Mode{strategies.ModeMeasure, strategies.ModeSimulate} {
			t.Run(fmt.Sprintf("%s/%s", kind, mode), func(t *testing.T) {
				meta := *exact
				late := new(atomic.Int64)
				meta.Name = "unsure"
				meta.Control = ""
				meta.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
					s, err := exact.Open(ctx, env)
					if err != nil {
						return nil, err
					}
					return unsure{s.(control), env.Clock, gridLength / 2, late}, nil
				}
				plan := harness.Plan{
					Strategies: []strategies.Selection{{Meta: &meta}}, Policy: gridPolicy(kind),
					Traffic: harness.Traffic{Workload: sessions(kind), Load: harness.OpenAt(2_000), Duration: 6 * gridLength},
					Workers: 8, Instances: 2, Seed: 5, Callers: harness.Callers{Life: gridLength / 2},
				}
				var r *results.Run
				if mode == strategies.ModeSimulate {
					report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
					if err != nil {
						t.Fatal(err)
					}
					series(t, report)
					r = &report.Runs[0]
				} else {
					for r == nil || !shows(r) && plan.Duration < time.Minute {
						report, err := measure.Measure(t.Context(), measure.Config{Plan: plan, Rounds: 1, NoReference: true})
						if err != nil {
							t.Fatal(err)
						}
						r = &report.Runs[0]
						plan.Duration = 2 * plan.Duration
					}
				}
				clean(t, r)
				if late.Load() == 0 || r.Settlement.Errors == 0 {
					t.Errorf("%d commits were late; settlement %+v", late.Load(), r.Settlement)
				}
			})
		}
	}
}

// failing admits everything. Commits of 3 units fail.
type failing struct{}

func (failing) Take(_ context.Context, r quota.Request) (quota.Decision, error) {
	return quota.Decision{Tier: quota.TierProcess, Admitted: true, Reservation: quota.Reservation{Request: r}}, nil
}

func (failing) Commit(_ context.Context, _ quota.Reservation, actual int64) error {
	if actual == 3 {
		return errors.New("planted")
	}
	return nil
}

func (failing) Close(context.Context) error { return nil }

// TestFailedCommitHidesNoLeak: the second of five requests of 1 unit, of which 2 fit, fails to commit 3 units. From
// the end of its life on it may hold none, but it does not lower what others hold.
func TestFailedCommitHidesNoLeak(t *testing.T) {
	for _, mode := range []strategies.Mode{strategies.ModeMeasure, strategies.ModeSimulate} {
		plan := harness.Plan{
			Strategies: []strategies.Selection{{Meta: &strategies.Meta{
				Name: "failing", Doc: "admits all", Form: strategies.Baseline, Counts: quota.CountsNothing, Kinds: quota.Kinds(),
				GivesBack: true,
				Open:      func(context.Context, strategies.Env) (strategies.Strategy, error) { return failing{}, nil },
			}}},
			Policy:  quota.Policy{Name: "grid", Limit: 2, Unit: "units"},
			Traffic: harness.Traffic{Workload: overruns, Load: harness.OpenAt(20), Arrivals: "constant", Requests: 5},
			Workers: 1, Instances: 1, Seed: 5, Callers: harness.Callers{Life: 10 * time.Millisecond},
		}
		var r *results.Run
		if mode == strategies.ModeSimulate {
			report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
			if err != nil {
				t.Fatal(err)
			}
			r = &report.Runs[0]
			// Its last sample comes before the last answer.
			if samples := report.Series[0].Samples; samples[len(samples)-1].Leak != 1 || r.Leak.Units != 2 {
				t.Errorf("the series ends with a leak of %d, want 1; %+v", samples[len(samples)-1].Leak, r.Leak)
			}
		} else {
			report, err := measure.Measure(t.Context(), measure.Config{Plan: plan, Rounds: 1, NoReference: true})
			if err != nil {
				t.Fatal(err)
			}
			r = &report.Runs[0]
		}
		// On a busy machine the life may not be over before the next request, and the leak is larger.
		if r.Leak.Units < 2 || r.Settlement.Errors != 1 && mode == strategies.ModeSimulate {
			t.Errorf("%s: leak %+v, want 2 units; settlement %+v", mode, r.Leak, r.Settlement)
		}
	}
}

// overruns has sessions of one subject that commit 1 unit, except for the second, which commits 3.
var overruns = &workloads.Meta{
	Name: "overruns", Doc: "one commit of more than was reserved", Loop: workloads.Closed, GivesBack: true,
	Make: func(workloads.Params) (workloads.Stream, workloads.Info, error) {
		return overrun{}, workloads.Info{Loop: workloads.Closed}, nil
	},
}

type overrun struct{ sessionStream }

func (overrun) Subjects() int { return 1 }

func (overrun) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Units: 1, Fate: workloads.FateCommit, Actual: 1}
	if i == 1 {
		op.Actual = 3
	}
}
