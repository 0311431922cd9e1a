//go:build !mutants

package runners_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// baked goes by the limit that a subject had at first, as a counter does that was
// filled with it.
type baked struct {
	strategies.Strategy
	first *atomic.Int64
	old   *atomic.Int64 // requests that went by another limit than theirs
}

func (b baked) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	b.first.CompareAndSwap(0, req.Policy.Limit)
	p := *req.Policy
	p.Limit = b.first.Load()
	if p.Limit != req.Policy.Limit {
		b.old.Add(1)
	}
	req.Policy = &p
	return b.Strategy.Take(ctx, req)
}

func bakedSelection(t *testing.T, old *atomic.Int64) strategies.Selection {
	t.Helper()
	sel := overExact(t, "baked", func(s strategies.Strategy) strategies.Strategy {
		return baked{s, new(atomic.Int64), old}
	})
	sel.Guarantee = []quota.Clause{quota.Exactly()}
	return sel
}

// TestLimitChanges: who goes by an old limit leaks what it admits after the limit was
// lowered, and rejects wrongly after it was raised, as many units as were planted. What
// was admitted before is no leak, and a clause that does not tolerate the change is not
// judged.
func TestLimitChanges(t *testing.T) {
	exact := testkit.Strategy(t, "exact").Meta
	steady, err := workloads.Lookup("steady")
	if err != nil {
		t.Fatal(err)
	}
	var old atomic.Int64
	const plenty, low = 1 << 40, "limit:is=4@0.475"
	high := fmt.Sprintf("limit:is=%d@0.475", int64(plenty))
	for _, c := range []struct {
		name          string
		limit         int64
		changes       []string
		of            strategies.Selection
		leak, rejects int64 // in a simulation with a request each second
	}{
		// Requests 1 to 10 come before 0.475 of the time, 11 to 20 after it, 16 to 20 after 0.725.
		{"lowered", plenty, []string{low}, strategies.Selection{Meta: exact}, 0, 0},
		{"raised", 4, []string{high}, strategies.Selection{Meta: exact}, 0, 0},
		{"lowered, baked", plenty, []string{low}, bakedSelection(t, &old), 10, 0},
		{"raised, baked", 4, []string{high}, bakedSelection(t, &old), 0, 10},
		{"lowered and raised, baked", plenty, []string{low, fmt.Sprintf("limit:is=%d@0.725", int64(plenty))},
			bakedSelection(t, &old), 5, 0},
	} {
		policy := quota.Policy{Name: "changing", Limit: c.limit, Unit: "units",
			Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
		plan := harness.Plan{
			Strategies: []strategies.Selection{c.of}, Policy: policy,
			Traffic: harness.Traffic{
				Workload: steady,
				Stream:   workloads.Params{Options: quota.Options{"subjects": "1", "over-quota": "0"}},
			},
			Workers: 1, Seed: 3,
			Surroundings: harness.Surroundings{Trouble: trouble.MustParse(c.changes...)},
		}
		judged := func(t *testing.T, r *results.Run) {
			t.Helper()
			if err := r.Err(); err != nil {
				t.Error(err)
			}
			if n := len(r.Params.Trouble); n != len(c.changes) || r.Params.Limit != c.limit {
				t.Errorf("the record has a limit of %d and %d changes of it", r.Params.Limit, n)
			}
			if judged := len(r.Guarantee) > 0; judged != (c.of.Name == "exact") {
				t.Errorf("clauses %+v", r.Guarantee)
			}
		}
		t.Run(c.name+"/simulate", func(t *testing.T) {
			p := plan
			p.Load = harness.OpenAt(1)
			p.Arrivals = "constant"
			p.Duration = 20 * time.Second
			p.Workers = 5
			report, err := sim.Run(t.Context(), sim.Config{Plan: p})
			if err != nil {
				t.Fatal(err)
			}
			r := &report.Runs[0]
			judged(t, r)
			if r.Leak.Units != c.leak || r.FalseRejects.Units != c.rejects || r.Leak.Possible != c.leak {
				t.Errorf("leak %+v, false rejects %+v of %d requests", r.Leak, r.FalseRejects, r.Issued)
			}
			last := report.Series[0].Samples[len(report.Series[0].Samples)-1]
			if last.Leak != c.leak || last.FalseRejects != c.rejects {
				t.Errorf("the series ends with a leak of %d and %d false rejects", last.Leak, last.FalseRejects)
			}
		})
		t.Run(c.name+"/measure", func(t *testing.T) {
			p := plan
			p.Load = harness.Closed()
			p.Workers = 4
			var r *results.Run
			// A busy machine may get few requests through after a change, or hold one up that began
			// before it, so the history leaves open which limit was in force.
			for p.Duration = testenv.Pick[time.Duration](25, 100) * time.Millisecond; p.Duration < time.Minute; p.Duration *= 2 {
				old.Store(0)
				report, err := measure.Measure(t.Context(), measure.Config{Plan: p, Rounds: 1, NoReference: true})
				if err != nil {
					t.Fatal(err)
				}
				r = &report.Runs[0]
				open := r.Leak.Units == 0 && r.Leak.Possible > 0 || r.FalseRejects.Units == 0 && r.FalseRejects.Possible > 0
				if c.of.Name == "exact" || old.Load() > 1_000 && (!open || len(c.changes) > 1) {
					break
				}
			}
			judged(t, r)
			if r.Leak.Units > 0 && c.leak == 0 || r.FalseRejects.Units > 0 && c.rejects == 0 {
				t.Errorf("leak %+v, false rejects %+v of %d requests", r.Leak, r.FalseRejects, r.Issued)
			}
			// With two changes, a single request that is held up may have gone by the higher limit
			// all the time.
			if len(c.changes) == 1 && (r.Leak.Units == 0 && c.leak > 0 || r.FalseRejects.Units == 0 && c.rejects > 0) {
				t.Errorf("%d of %d requests went by the old limit: leak %+v, false rejects %+v", old.Load(), r.Issued, r.Leak,
					r.FalseRejects)
			}
		})
	}
}

// TestBadLimitChanges: what cannot be done is refused in words.
func TestBadLimitChanges(t *testing.T) {
	for _, bad := range []struct {
		why    string
		change func(*harness.Plan)
	}{
		{"duration", func(p *harness.Plan) {
			p.Duration = 0
			p.Requests = 10
		}},
		{"bucket", func(p *harness.Plan) {
			p.Policy.Window = quota.Window{Kind: quota.Bucket, Length: time.Second, Refill: 1}
		}},
		{"same time", func(p *harness.Plan) { p.Trouble = append(p.Trouble, trouble.MustParse("limit:is=4@0.5")...) }},
		{"another value of is", func(p *harness.Plan) { p.Trouble[0].What.Units = 0 }},
	} {
		p, err := harness.NewPlan("exact", "link-hits", "steady")
		if err != nil {
			t.Fatal(err)
		}
		p.Workers, p.Duration, p.Trouble = 1, time.Second, trouble.MustParse("limit:is=3@0.5")
		bad.change(&p)
		if err := (&measure.Config{Plan: p}).Complete(); err == nil || !strings.Contains(fmt.Sprint(err), bad.why) {
			t.Errorf("%s: %v", bad.why, err)
		}
	}
	p, err := harness.NewPlan("exact", "link-hits", "steady")
	if err != nil {
		t.Fatal(err)
	}
	p.Workers = 1
	p.Instances = 2
	p.Duration = time.Second
	p.Trouble = trouble.MustParse("limit:is=3@0.5", "instance/1:clock=1s")
	if _, err := sim.Run(t.Context(), sim.Config{Plan: p}); err == nil || !strings.Contains(err.Error(), "one clock") {
		t.Errorf("with clocks that differ: %v", err)
	}
}
