package explore_test

import (
	"testing"

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
