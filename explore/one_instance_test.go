package explore_test

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Every strategy keeps what it declares if its only instance crashes and its store is gone, twice each.
func TestDeclaredGuaranteesOfOneInstance(t *testing.T) {
	testenv.Sequential(t)
	cfg := explore.Config{
		Clients: 3, Instances: 1, Limit: 1, Scope: explore.Scope{Times: 2},
		Faults:     []quota.Fault{quota.FaultCrash, quota.FaultOutage},
		Properties: []explore.Property{explore.Guarantee},
		Bounds:     explore.Bounds{MaxStates: testenv.Pick(300, 2_000), Preemptions: -1},
	}
	for _, m := range strategies.All() {
		if _, excluded := m.Excludes(strategies.ModeExplore); excluded || m.NeedsStore(strategies.NeedPostgres) {
			continue
		}
		if f := run(t, m.Name, cfg).Found(explore.Guarantee); f != nil {
			t.Errorf("%s: %s by %s", m.Name, f.Detail, words(f))
		}
	}
	// The same search refutes one that would declare too much.
	sel := testkit.Strategy(t, "memory-deque")
	boasts := *sel.Meta
	boasts.Guarantee = []quota.Clause{quota.Exactly(quota.FaultCrash)}
	sel.Meta = &boasts
	r, err := explore.Run(t.Context(), sel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	found(t, r, explore.Guarantee)
}

// A library whose instances count for themselves is not accused of having several, whatever else is asked for.
func TestInstancesThatCountAlone(t *testing.T) {
	m := strategies.FromFunc("alone", []quota.Kind{quota.Fixed},
		func(_ context.Context, env strategies.Env, policy *quota.Policy) (strategies.Allower, error) {
			return &alone{clock: env.Clock, policy: policy, used: map[int64]int64{}}, nil
		})
	m.Needs = nil
	m.PerProcess = true
	m.Guarantee = quota.PerInstance()
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	skewed := explore.Config{Skew: []time.Duration{-5 * time.Second}}
	ticking := explore.Config{Faults: []quota.Fault{quota.FaultClock}}
	for _, cfg := range []explore.Config{skewed, ticking, {Instances: 2}} {
		placed := cfg.Placed(sel)
		res, err := explore.Run(t.Context(), sel, placed[0])
		if err != nil {
			t.Fatal(err)
		}
		if leaks := res.Found(explore.Leak) != nil; leaks != (cfg.Instances == 2) {
			t.Errorf("skew %v, faults %v, %d instances: it leaks: %t", cfg.Skew, cfg.Faults, cfg.Instances, leaks)
		}
	}
}

// alone counts in memory.
type alone struct {
	clock  quota.Clock
	policy *quota.Policy
	used   map[int64]int64 // by window
}

// Allow implements [strategies.Allower].
func (a *alone) Allow(context.Context, string) (bool, error) {
	window := a.policy.Window.At(a.clock.Now()).Index
	a.used[window]++
	return a.used[window] <= a.policy.Limit, nil
}
