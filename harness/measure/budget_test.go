package measure

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// TestEnds plants what ends a measurement before its last round: a budget without time for
// another whole round, and figures that are enough.
func TestEnds(t *testing.T) {
	v := &virtual{}
	p := &planted{delay: func(context.Context) { v.advance(time.Microsecond) }}
	policy := testkit.Policy(t, "user-links")
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	measured := func(rounds int, budget time.Duration, enough func(int, []results.Run) bool) (*Report, time.Duration) {
		t.Helper()
		tb := v.timebase()
		begun := tb.nano()
		r, err := Measure(t.Context(), Config{
			Plan: harness.Plan{Strategies: []strategies.Selection{p.selection()}, Policy: policy,
				Traffic: harness.Traffic{Workload: w, Requests: 400}, Workers: 1,
				Instances: 2},
			Rounds: rounds, Budget: budget, Enough: enough, base: tb,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range r.Runs {
			if run.Issued != 400 || run.Partial || run.Params.Workers != 1 {
				t.Errorf("round %d: %d requests of %d workers, partial: %v", run.Repetition, run.Issued, run.Params.Workers,
					run.Partial)
			}
		}
		return r, time.Duration(tb.nano() - begun)
	}
	_, one := measured(1, 0, nil)
	if r, took := measured(50, 12*one, nil); !r.OutOfTime || len(r.Runs) < 7 || len(r.Runs) > 13 || took > 12*one {
		t.Errorf("a budget of twelve rounds: %d rounds in %v of %v, out of time: %v", len(r.Runs), took, 12*one, r.OutOfTime)
	}
	if r, took := measured(50, 4*one, nil); !r.OutOfTime || len(r.Runs) != bounds.LeastRounds {
		t.Errorf("a budget of four rounds: %d rounds in %v, want those that an interval needs", len(r.Runs), took)
	}
	if r, _ := measured(50, 1, nil); !r.OutOfTime || len(r.Runs) != 1 {
		t.Errorf("no budget: %d rounds, out of time: %v", len(r.Runs), r.OutOfTime)
	}
	var asked []int
	r, _ := measured(4, time.Hour, func(round int, runs []results.Run) bool {
		if len(runs) != round {
			t.Errorf("%d runs after round %d", len(runs), round)
		}
		asked = append(asked, round)
		return round == 3
	})
	if r.OutOfTime || len(r.Runs) != 3 || len(asked) != 3 {
		t.Errorf("%d rounds, asked after %v, out of time: %v", len(r.Runs), asked, r.OutOfTime)
	}
}
