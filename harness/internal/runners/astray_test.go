package runners_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/baseline"
)

// astray is a strategy that goes astray at its n-th request, and counts up to the limit
// before that.
type astray struct {
	strategies.Strategy
	env strategies.Env
	bad func(ctx context.Context, a *astray, r quota.Request) (quota.Decision, error)
	at  int64
	// blocked counts the calls that wait forever, of all instances.
	blocked *atomic.Int64

	mu   sync.Mutex
	n    int64
	used map[quota.Subject]int64
	held sync.Mutex
}

func (a *astray) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	a.mu.Lock()
	if r.ID < bounds.ProbeID {
		a.n++
	}
	bad := a.n >= a.at
	d := quota.Decision{Admitted: a.used[r.Subject]+r.Units <= r.Policy.Limit, Tier: quota.TierProcess, Remaining: -1,
		Reservation: quota.Reservation{Request: r}}
	if d.Admitted && !bad {
		a.used[r.Subject] += r.Units
	}
	a.mu.Unlock()
	if bad {
		return a.bad(ctx, a, r)
	}
	return d, nil
}

func (a *astray) Close(context.Context) error { return nil }

func newAstray(bad func(context.Context, *astray, quota.Request) (quota.Decision, error), at int64) *astray {
	return &astray{bad: bad, at: at, blocked: new(atomic.Int64)}
}

// selection goes astray from a request on, in each instance.
func (a *astray) selection(name string, needs ...strategies.Need) strategies.Selection {
	return strategies.Selection{Meta: &strategies.Meta{
		Name: name, Doc: "goes astray", Form: strategies.Baseline, Counts: quota.CountsAdmitted, Needs: needs,
		Kinds: quota.Kinds(), Guarantee: []quota.Clause{quota.Exactly()},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			return &astray{env: env, bad: a.bad, at: a.at, blocked: a.blocked, used: map[quota.Subject]int64{}}, nil
		},
	}}
}

// The ways to go astray. What blocks never ends: these goroutines stay.
func blocks(_ context.Context, a *astray, _ quota.Request) (quota.Decision, error) {
	a.blocked.Add(1)
	select {}
}

func holdsMutex(ctx context.Context, a *astray, r quota.Request) (quota.Decision, error) {
	if !a.held.TryLock() {
		a.blocked.Add(1) // forever in virtual time alone
		a.held.Lock()
	}
	defer a.held.Unlock()
	n, err := strategies.Redis(a.env).IncrBy(ctx, a.env.Prefix+string(r.Subject), r.Units).Result()
	return quota.Decision{Admitted: n <= r.Policy.Limit, Tier: quota.TierRedis, Remaining: -1}, err
}

func panics(context.Context, *astray, quota.Request) (quota.Decision, error) {
	panic("planted\npanic")
}

func grantsTooMuch(context.Context, *astray, quota.Request) (quota.Decision, error) {
	return quota.Decision{Admitted: true, Granted: 1 << 40, Remaining: -1}, nil
}

func nonsense(_ context.Context, _ *astray, r quota.Request) (quota.Decision, error) {
	r.Subject = "somebody-else"
	return quota.Decision{Admitted: true, Tier: "\x1b[31mnowhere", Remaining: -7,
		Reservation: quota.Reservation{Request: r}}, nil
}

// theirs are the strategies next to the exact control, and the finding that each
// must have in each mode; "" if it may have any.
var theirs = []struct {
	name              string
	bad               func(context.Context, *astray, quota.Request) (quota.Decision, error)
	at                int64
	needs             []strategies.Need
	run, sim, explore string
}{
	{"blocks", blocks, 700, nil, "did-not-return", "did-not-return", "does not return"},
	{"blocks-at-once", blocks, 0, nil, "did-not-return", "did-not-return", "does not return"},
	// On real stores the others wait for the mutex no longer than the store takes.
	{"holds-mutex", holdsMutex, 0, []strategies.Need{strategies.NeedRedis}, "", "did-not-return",
		"nothing is said of the limiter"},
	{"panics", panics, 700, nil, "strategy-panicked", "strategy-panicked", "panics"},
	{"panics-at-once", panics, 0, nil, "strategy-panicked", "strategy-panicked", "panics"},
	{"grants-too-much", grantsTooMuch, 0, nil, "run-failed", "errors", "nothing may be claimed"},
	{"nonsense", nonsense, 0, nil, "", "", ""},
}

// longDeadline is one that a call which returns keeps on any machine.
const longDeadline = 2 * time.Minute

// withDeadline calls run with a short deadline of decisions, since a call is to be given
// up. It doubles while a call was given up that does not block, as on a busy machine.
func withDeadline(run func(deadline time.Duration) (early bool)) {
	for deadline := 200 * time.Millisecond; run(deadline) && deadline < longDeadline; deadline *= 2 {
	}
}

// early reports whether a call was given up that does not block.
func early(runs []results.Run, blocked *atomic.Int64) bool {
	return slices.ContainsFunc(runs, func(r results.Run) bool {
		return r.Strategy == "exact" && r.Audit.Has(codes.Hung) || r.Strategy != "exact" &&
			r.DidNotReturn > blocked.Load()
	})
}

func plan(t *testing.T, list ...strategies.Selection) harness.Plan {
	t.Helper()
	p, err := harness.NewPlan("exact", "user-links", "hot-key")
	if err != nil {
		t.Fatal(err)
	}
	p.Strategies = list
	p.Requests = 4000
	p.Workers = 4
	p.Seed = 3
	p.DecisionTimeout = longDeadline
	p.Policy.Limit = 50
	p.Stores = stores.NewSet()
	if err := p.Stores.Add(string(strategies.NeedRedis), storetest.EmbeddedRedis(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// counted is what a run must have in common with one next to other strategies.
func counted(t *testing.T, r results.Run) any {
	t.Helper()
	if !r.Audit.Valid {
		t.Errorf("exact is discarded: %+v", r.Audit.Reasons)
	}
	clauses := r.Guarantee
	return []any{r.Issued, r.Admitted, r.Rejected, r.Errors, r.Leak.Units, r.Leak.Trials, r.FalseRejects.Count,
		r.Drift.Units, clauses[0].Verdict, r.Partial, r.Trace}
}

// found is the run of a strategy, which must have the finding with the strategy's stack.
func found(t *testing.T, runs []results.Run, name, code string) {
	t.Helper()
	for _, r := range runs {
		if r.Strategy != name {
			continue
		}
		if code == "" {
			return
		}
		for _, x := range r.Audit.Reasons {
			if x.Code != code {
				continue
			}
			if r.Audit.Valid || strings.Contains(x.Detail, "\n") {
				t.Errorf("%s: %+v", name, r.Audit)
			}
			if hung := code == codes.Hung; hung || code == "strategy-panicked" {
				if !strings.Contains(x.Stack, "astray_test.go") || hung != (r.DidNotReturn > 0) {
					t.Errorf("%s: %d calls did not return, and the stack is %q", name, r.DidNotReturn, x.Stack)
				}
				if hung && !strings.Contains(x.Detail, "runners_test.") {
					t.Errorf("%s: no function of the strategy in %q", name, x.Detail)
				}
			}
			return
		}
		t.Errorf("%s has no finding %s: %+v", name, code, r.Audit.Reasons)
		return
	}
	t.Errorf("%s has no run", name)
}

// repeated runs once, or, if the strategy hangs, with longer deadlines until no call was given
// up early.
func (a *astray) repeated(hangs bool, p *harness.Plan, run func(), runs func() []results.Run) {
	if !hangs {
		run()
		return
	}
	withDeadline(func(deadline time.Duration) bool {
		a.blocked.Store(0)
		p.DecisionTimeout = deadline
		run()
		return early(runs(), a.blocked)
	})
}

func TestAstrayBesideExactMeasured(t *testing.T) {
	runs := func(a *astray, hangs bool, list ...strategies.Selection) (runs []results.Run, exact any) {
		p := plan(t, list...)
		var report *measure.Report
		run := func() {
			var err error
			report, err = measure.Measure(t.Context(), measure.Config{Plan: p, Rounds: 2, NoReference: true})
			if err != nil {
				t.Fatal(err)
			}
		}
		a.repeated(hangs, &p, run, func() []results.Run { return report.Runs })
		var all []any
		for _, r := range report.Runs {
			if r.Strategy == "exact" {
				all = append(all, counted(t, r))
			}
		}
		if len(all) != 2 {
			t.Fatalf("%d runs of exact", len(all))
		}
		if len(list) > 1 && list[0].Name != "nonsense" && list[0].Name != "holds-mutex" {
			var invalid *results.InvalidError
			if err := report.Err(); !errors.As(err, &invalid) || invalid.Label != list[0].Name {
				t.Errorf("%s: error %v", list[0].Name, err)
			}
		}
		return report.Runs, all
	}
	_, alone := runs(nil, false, testkit.Strategy(t, "exact"))
	for _, s := range theirs {
		a := newAstray(s.bad, s.at)
		got, beside := runs(a, s.run == codes.Hung, a.selection(s.name, s.needs...), testkit.Strategy(t, "exact"))
		if !reflect.DeepEqual(beside, alone) {
			t.Errorf("exact beside %s: %v, alone %v", s.name, beside, alone)
		}
		found(t, got, s.name, s.run)
		n := 0
		for _, r := range got {
			if r.Strategy == s.name {
				n++
			}
			// What was decided before is counted, and what was under way is not lost.
			if r.Strategy == s.name && s.at == 700 &&
				(r.Issued != 699+r.Errors || r.Errors < 1 || r.Errors > 4 || !r.Partial || r.Leak.Units != 0) {
				t.Errorf("%s: %d issued, %d errors", s.name, r.Issued, r.Errors)
			}
			if r.Strategy == s.name && r.Audit.Has("count-mismatch") || r.Audit.Has("oracles-disagree") ||
				r.Audit.Has("sample-mismatch") {
				t.Errorf("%s: %+v", s.name, r.Audit.Reasons)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[s.run == codes.Hung]; n != want {
			t.Errorf("%s ran %d times, want %d", s.name, n, want)
		}
	}
}

func TestAstrayBesideExactSimulated(t *testing.T) {
	run := func(a *astray, hangs bool, list ...strategies.Selection) ([]results.Run, any) {
		p := plan(t, list...)
		p.Stores = nil
		var report *sim.Report
		run := func() {
			var err error
			report, err = sim.Run(t.Context(), sim.Config{Plan: p})
			if report == nil {
				t.Fatal(err)
			}
		}
		a.repeated(hangs, &p, run, func() []results.Run { return report.Runs })
		last := report.Runs[len(report.Runs)-1]
		if len(report.Runs) != len(list) || last.Strategy != "exact" {
			t.Fatalf("%d runs, the last of %s", len(report.Runs), last.Strategy)
		}
		return report.Runs, counted(t, last)
	}
	_, alone := run(nil, false, testkit.Strategy(t, "exact"))
	for _, s := range theirs {
		a := newAstray(s.bad, s.at)
		runs, beside := run(a, s.sim == codes.Hung, a.selection(s.name, s.needs...), testkit.Strategy(t, "exact"))
		if !reflect.DeepEqual(beside, alone) {
			t.Errorf("exact beside %s: %v, alone %v", s.name, beside, alone)
		}
		found(t, runs, s.name, s.sim)
		if r := runs[0]; s.name == "panics" && (r.Issued != 699+r.Errors || r.Errors < 1 || r.Errors > 4 || !r.Partial) {
			t.Errorf("%d issued, %d errors: what was decided before the panic is lost", r.Issued, r.Errors)
		}
	}
}

func TestAstrayBesideExactExplored(t *testing.T) {
	search := func(sel strategies.Selection, deadline time.Duration) (*explore.Result, error) {
		policy := testkit.Policy(t, "user-links")
		return explore.Run(t.Context(), sel, explore.Config{Policy: policy, Instances: 1,
			Bounds: explore.Bounds{DecisionTimeout: deadline}})
	}
	alone, err := search(testkit.Strategy(t, "exact"), longDeadline)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range theirs {
		a := newAstray(s.bad, min(s.at, 2)) // two clients ask once each
		hangs := s.sim == codes.Hung
		var err error
		if sel := a.selection(s.name, s.needs...); hangs {
			withDeadline(func(deadline time.Duration) bool {
				_, err = search(sel, deadline)
				return a.blocked.Load() == 0
			})
		} else {
			_, err = search(sel, longDeadline)
		}
		if s.explore != "" && (err == nil || !strings.Contains(err.Error(), s.explore) ||
			strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: error %v", s.name, err)
		}
		if stack := guard.Stack(err); hangs && !strings.Contains(stack, "astray_test.go") {
			t.Errorf("%s: the stack is %q", s.name, stack)
		}
		beside, err := search(testkit.Strategy(t, "exact"), longDeadline)
		if err != nil || !reflect.DeepEqual(beside, alone) {
			t.Errorf("exact after %s: %+v, %v", s.name, beside, err)
		}
	}
}

// TestInterruptedWhileAStrategyBlocks: Ctrl-C does not wait for as long as the time-out
// of decisions when a strategy blocks in virtual time.
func TestInterruptedWhileAStrategyBlocks(t *testing.T) {
	for mode, run := range map[string]func(*testing.T, context.Context, strategies.Selection) error{
		"sim": func(t *testing.T, ctx context.Context, sel strategies.Selection) error {
			p := plan(t, testkit.Strategy(t, "exact"), sel)
			p.Stores = nil
			p.DecisionTimeout = bounds.MaxDecisionTimeout
			report, err := sim.Run(ctx, sim.Config{Plan: p, Parallel: 1})
			if report == nil || !report.Interrupted || len(report.Runs) != 2 || report.Runs[0].Issued != 4000 {
				t.Errorf("%+v", report)
			}
			return err
		},
		"explore": func(_ *testing.T, ctx context.Context, sel strategies.Selection) error {
			_, err := explore.Run(ctx, sel, explore.Config{Bounds: explore.Bounds{DecisionTimeout: bounds.MaxDecisionTimeout}})
			return err
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel() // each waits for a second
			ctx, interrupt := context.WithCancel(t.Context())
			sel := newAstray(func(context.Context, *astray, quota.Request) (quota.Decision, error) {
				interrupt()
				select {}
			}, 0).selection("blocks")
			if err := run(t, ctx, sel); err == nil || !strings.Contains(err.Error(), "does not return") {
				t.Errorf("error %v", err)
			}
		})
	}
}
