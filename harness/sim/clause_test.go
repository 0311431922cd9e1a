package sim_test

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A clause sees the policy in force and the strategy's options.
func TestClausesSeePolicyAndOptions(t *testing.T) {
	cfg := config(t, "exact", "agent-api", "hot-key")
	cfg.Requests = 200
	cfg.Workers = 4
	cfg.Policy.Limit = 10
	meta := *cfg.Strategies[0].Meta
	meta.Options = []quota.Option{{Name: "burst", Doc: "for the test", Type: "int", Default: "3"}}
	var seen []quota.Params
	meta.Guarantee = []quota.Clause{{Property: quota.PropertyLeak, Formula: "L + burst",
		Bound: func(p quota.Params) int64 {
			seen = append(seen, p)
			return p.Options.Int("burst")
		}}}
	sel, err := meta.Select(quota.Options{"burst": "7"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Strategies = []strategies.Selection{sel}
	r := run(t, cfg).Runs[0]
	if len(r.Guarantee) != 1 || r.Guarantee[0].Bound != 7 || len(seen) == 0 || seen[0].Policy == nil ||
		seen[0].Policy.Limit != 10 {
		t.Errorf("clauses %+v, evaluated with %+v", r.Guarantee, seen)
	}
}
