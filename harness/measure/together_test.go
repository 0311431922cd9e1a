package measure

import (
	"context"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// TestMeasuredTogether: two measurements that are under way at the same time have verdicts, and no timings that count.
// One before them and one after them have both.
func TestMeasuredTogether(t *testing.T) {
	policy := testkit.Policy(t, "user-links")
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	measured := func(leak int64, meet func()) *results.Run {
		p := &planted{leak: leak}
		p.delay = func(context.Context) {
			if p.total == 100 { // in the measured pass
				meet()
			}
		}
		r, err := Measure(t.Context(), Config{
			Plan: harness.Plan{Strategies: []strategies.Selection{p.selection()}, Policy: policy, Traffic: harness.Traffic{
				Workload: w,
				Requests: 4000,
			}, Workers: 1},
			Rounds: 1,
		})
		if err != nil || len(r.Runs) != 1 {
			t.Errorf("%+v, %v", r, err)
			return new(results.Run)
		}
		return &r.Runs[0]
	}
	require := func(r *results.Run, leak bool, others bool) {
		t.Helper()
		if (r.Leak.Units > 0) != leak || !r.Audit.Valid || r.Audit.Has("other-measurements") != others || others &&
			!r.Audit.Disturbed() {
			t.Errorf("a leak: %v, others: %v; it has %+v and %+v", leak, others, r.Leak, r.Audit)
		}
	}
	require(measured(0, func() {}), false, false)
	var both [2]*results.Run
	var here, ended sync.WaitGroup
	here.Add(len(both))
	for i := range both {
		ended.Go(func() {
			both[i] = measured(int64(i), sync.OnceFunc(func() {
				here.Done()
				here.Wait()
			}))
		})
	}
	ended.Wait()
	require(both[0], false, true)
	require(both[1], true, true)
	require(measured(1, func() {}), true, false)
}
