package explore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/strategies"
)

// Every strategy keeps what it declares under each fault that one of its clauses
// tolerates, and under none, with three clients. What was searched is in the log,
// and whether a bound ended it.
func TestDeclaredGuarantees(t *testing.T) {
	testenv.Sequential(t)
	tried := 0
	bound := testenv.Pick(50, 400)
	for _, m := range strategies.All() {
		if m.NeedsStore(strategies.NeedPostgres) || len(m.Guarantee) == 0 {
			continue // those of PostgreSQL need a server, and have tests of their own
		}
		if _, excluded := m.Excludes(strategies.ModeExplore); excluded {
			continue
		}
		for _, f := range append([]quota.Fault{""}, tolerated(m)...) {
			tried++
			cfg := explore.Config{Clients: 3, Limit: 1, Properties: []explore.Property{explore.Guarantee},
				Bounds: explore.Bounds{MaxStates: bound}}
			if f != "" {
				cfg.Faults = []quota.Fault{f}
			}
			r, err := explore.Run(t.Context(), testkit.Strategy(t, m.Name), cfg)
			if err != nil {
				t.Errorf("%s, %s: %v", m.Name, f, err)
				continue
			}
			t.Logf("%-20s %-10s %7d states, %7d schedules of up to %2d steps%s", m.Name, f, r.States, r.Runs, r.Depth,
				cappedBy(r))
			if b := r.Found(explore.Guarantee); b != nil {
				var shown strings.Builder
				_ = text.Timeline(&shown, layout.Page{}, b)
				t.Errorf("%s, %s: %s\n%s", m.Name, f, b.Detail, shown.String())
			}
			if r.Runs < 20 && r.Capped != "" {
				t.Errorf("%s, %s: %d schedules are no search", m.Name, f, r.Runs)
			}
		}
	}
	if tried < 20 {
		t.Fatalf("%d searches: the registry declares more", tried)
	}
}

func cappedBy(r *explore.Result) string {
	if r.Capped == "" {
		return ", all there are"
	}
	return ", ended by " + r.Capped
}

// tolerated lists the faults that any clause of m tolerates, each once, as far as
// they can be injected.
func tolerated(m *strategies.Meta) []quota.Fault {
	var out []quota.Fault
	for _, f := range explore.Faults() {
		if slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool { return slices.Contains(c.Tolerates, f) }) {
			out = append(out, f)
		}
	}
	return out
}

func TestSQLIsRefusedWithTheReason(t *testing.T) {
	for _, m := range strategies.All() {
		if !m.NeedsStore(strategies.NeedPostgres) || m.Excluded[strategies.ModeExplore] != "" {
			continue
		}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := explore.Run(t.Context(), sel, explore.Config{}); err == nil ||
			!strings.Contains(err.Error(), "PostgreSQL") {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
