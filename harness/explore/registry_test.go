package explore_test

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/strategies"
)

// Every strategy keeps what it declares, under the faults that it declares to
// tolerate, as far as a short search goes: three clients, and a bound on states.
func TestDeclaredGuarantees(t *testing.T) {
	tried := 0
	for _, m := range strategies.All() {
		for i, c := range m.Guarantee {
			if m.NeedsStore(strategies.NeedPostgres) {
				continue
			}
			tried++
			sel, err := m.Select(nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := explore.Run(t.Context(), sel, explore.Config{
				Clients: 3, Limit: 1, Faults: c.Tolerates, Properties: []explore.Property{explore.Guarantee}, MaxStates: 400,
			})
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
				continue
			}
			if f := r.Found(explore.Guarantee); f != nil {
				var b strings.Builder
				_ = explore.WriteTimeline(&b, f)
				t.Errorf("%s, clause %d: %s\n%s", m.Name, i, f.Detail, b.String())
			}
		}
	}
	if tried == 0 {
		t.Fatal("no clause was tried")
	}
}

func TestSQLIsRefusedWithTheReason(t *testing.T) {
	for _, m := range strategies.All() {
		if !m.NeedsStore(strategies.NeedPostgres) {
			continue
		}
		sel, err := m.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := explore.Run(t.Context(), sel, explore.Config{}); err == nil || !strings.Contains(err.Error(), "PostgreSQL") {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
