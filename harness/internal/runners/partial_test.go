//go:build !mutants

package runners_test

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// granting grants what there is, if that is less than was asked for: by that many
// units more or fewer, if something is planted.
type granting struct {
	strategies.Strategy
	planted int64
}

func (g granting) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	asked := req.Units
	d, err := g.Strategy.Take(ctx, req)
	for err == nil && !d.Admitted && d.Remaining+min(g.planted, 0) > 0 {
		req.Units = d.Remaining + min(g.planted, 0)
		d, err = g.Strategy.Take(ctx, req)
		if d.Admitted {
			d.Granted = min(asked, req.Units+max(g.planted, 0))
			d.Reservation.Request.Units = d.Granted
		}
	}
	return d, err
}

func (g granting) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	return g.Strategy.(strategies.Viewer).Used(ctx, s, p)
}

func (g granting) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	return g.Strategy.(strategies.Provisioner).Provision(ctx, p, grants)
}

// overExact is a selection of a strategy that wraps the exact control.
func overExact(t *testing.T, name string, wrap func(strategies.Strategy) strategies.Strategy) strategies.Selection {
	t.Helper()
	exact := testkit.Strategy(t, "exact").Meta
	m := *exact
	m.Name = name
	m.Control = ""
	m.GivesBack = false
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := exact.Open(ctx, env)
		return wrap(s), err
	}
	return strategies.Selection{Meta: &m}
}

// grantingSelection is a selection of it.
func grantingSelection(t *testing.T, planted int64) strategies.Selection {
	t.Helper()
	return overExact(t, "granting", func(s strategies.Strategy) strategies.Strategy { return granting{s, planted} })
}

// TestPartialGrantsInEveryMode: what was granted counts, in a measured run, in a
// simulated one and in a search; a grant of more than there is leaks, and one of less
// than there is rejects wrongly.
func TestPartialGrantsInEveryMode(t *testing.T) {
	// Requests of 3 units meet a limit of 11 with 2 left.
	policy := quota.Policy{Name: "parts", Limit: 11, Unit: "units",
		Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}, Costs: []int64{3}}
	for _, c := range []struct {
		name         string
		planted      int64
		leak, reject bool
	}{{"right", 0, false, false}, {"too much", 1, true, false}, {"too little", -1, false, true}} {
		check := func(t *testing.T, r *results.Run) {
			t.Helper()
			if err := r.Err(); err != nil && !c.leak && !c.reject {
				t.Error(err)
			}
			if (r.Leak.Units > 0) != c.leak || (r.FalseRejects.Units > 0) != c.reject || r.Leak.Trials == 0 {
				t.Errorf("leak %+v, false rejects %+v", r.Leak, r.FalseRejects)
			}
			if c.leak && r.Leak.WorstUnits != 1 {
				t.Errorf("a worst leak of %d units, 1 was planted", r.Leak.WorstUnits)
			}
			if n := r.Admitted + r.Rejected + r.Errors; n != r.Issued {
				t.Errorf("%d of %d requests were answered", n, r.Issued)
			}
			if r.Drift != nil && r.Drift.Units != 0 && !c.leak {
				t.Errorf("drift %+v", r.Drift)
			}
		}
		hot, err := workloads.Lookup("hot-key")
		if err != nil {
			t.Fatal(err)
		}
		plan := harness.Plan{
			Strategies: []strategies.Selection{grantingSelection(t, c.planted)}, Policy: policy,
			Traffic: harness.Traffic{Workload: hot, Requests: 400},
			Workers: 1, Instances: 1, Seed: 3,
		}
		t.Run(c.name+"/measure", func(t *testing.T) {
			report, err := measure.Measure(t.Context(), measure.Config{Plan: plan, Rounds: 1, NoReference: true})
			if err != nil {
				t.Fatal(err)
			}
			check(t, &report.Runs[0])
		})
		t.Run(c.name+"/simulate", func(t *testing.T) {
			report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
			if err != nil {
				t.Fatal(err)
			}
			check(t, &report.Runs[0])
		})
		t.Run(c.name+"/explore", func(t *testing.T) {
			take := explore.Script{{Kind: explore.Take, Units: 3}}
			r, err := explore.Run(t.Context(), grantingSelection(t, c.planted), explore.Config{
				Policy: policy, Limit: 5, Clients: 2, Instances: 1, Scripts: []explore.Script{take, take},
			})
			if err != nil || r.Capped != "" {
				t.Fatal(err, r.Capped)
			}
			found := map[string]bool{}
			for _, f := range r.Findings {
				found[string(f.Property)] = true
			}
			if found["leak"] != c.leak || found["false-reject"] != c.reject {
				t.Errorf("found %v", found)
			}
		})
	}
}
