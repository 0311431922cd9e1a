package inproc

import (
	"math/rand/v2"
	"testing"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// changesItsOwn reports whether three callers of one instance, in any of some orders, leave
// anything in its memory, other than in what all instances have in common.
func changesItsOwn(t *testing.T, sel strategies.Selection, p quota.Policy) bool {
	t.Helper()
	p.Limit = 1
	setup := engine.Setup{
		Policy: p, Clients: 3, Instances: 1, Scripts: []engine.Script{{{Kind: engine.Take, Units: 1}}}, Seed: 1, Times: 1,
		JobRounds: 1,
	}
	random := rand.New(rand.NewPCG(1, 1))
	changed, err := Search(sel, setup, func(w *Engine) (changed bool, err error) {
		for range 20 {
			if err := w.Begin(); err != nil {
				return false, err
			}
			before, _ := w.hash(w.instances[0], w.shared)
			for next := w.Enabled(nil, false); len(next) > 0; next = w.Enabled(nil, false) {
				if err := w.Step(next[random.IntN(len(next))]); err != nil {
					return false, err
				}
				now, _ := w.hash(w.instances[0], w.shared)
				changed = changed || now != before
			}
		}
		return changed, w.End()
	})
	if err != nil {
		t.Fatalf("%s: %v", sel, err)
	}
	return changed
}

// TestSharesMemoryIsDeclared: what a strategy declares of its memory is what its callers do to it.
func TestSharesMemoryIsDeclared(t *testing.T) {
	asked := 0
	for _, m := range strategies.All() {
		if _, no := m.Excludes(strategies.ModeExplore); no || m.NeedsStore(strategies.NeedPostgres) ||
			m.Control == strategies.ControlExact {
			continue
		}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range quota.Policies() {
			if m.ServesPolicy(&p) != nil {
				continue
			}
			asked++
			if shares := changesItsOwn(t, sel, p); shares != m.SharesMemory {
				t.Errorf("%s under %s: its callers change its memory: %t, and it declares %t", m.Name, p.Name, shares,
					m.SharesMemory)
			}
			break
		}
	}
	if asked < 20 {
		t.Errorf("%d strategies were asked", asked)
	}
}
