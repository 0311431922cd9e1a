package measure

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestDeclaredUnderOutagesOfPostgres: strategies that are SQL, and that neither a search
// nor a simulation can take their server from, keep what they declare when it is away
// for a fifth of a run.
func TestDeclaredUnderOutagesOfPostgres(t *testing.T) {
	var names []string
	for _, m := range strategies.All() {
		tolerates := slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool {
			return slices.Contains(c.Tolerates, quota.FaultOutage)
		})
		if tolerates && m.BuiltIn() == nil && slices.Equal(m.Needs, []strategies.Need{strategies.NeedPostgres}) {
			names = append(names, m.Name)
		}
	}
	if len(names) < 4 {
		t.Fatalf("strategies that are SQL and declare to bear an outage: %v", names)
	}
	server := storetest.Postgres(t)
	for _, name := range testenv.Pick(names[:1], names) {
		r := measureLonger(t, name, "agent-api", "hot-key", func(c *Config) {
			c.Load = harness.Closed()
			c.Policy.Limit = 20
			c.Stores = setOf(t, server)
			c.Trouble = trouble.MustParse("postgres:away@0.4-0.6")
		}, func(r results.Run) bool { return r.Audit.Has("planned-errors") && decided(r, 0, 1) > 0 })[name]
		if len(r.Guarantee) == 0 || r.Admitted == 0 {
			t.Errorf("%s: %d admitted, it is held to %+v", name, r.Admitted, r.Guarantee)
		}
		for _, c := range r.Guarantee {
			if c.Verdict == results.Broken {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if !r.Audit.Has("planned-errors") {
			t.Errorf("%s: the outage has met no request", name)
		}
	}
	t.Logf("%v", names)
}
