package sim_test

import (
	"testing"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/results"
)

// What a simulation tells of itself grows while it runs, and ends at all of it.
func TestProgress(t *testing.T) {
	var p sim.Progress
	if p.Share() != 0 {
		t.Errorf("before it begins: %v", p.Share())
	}
	var seen []float64
	cfg := config(t, "incr-expire,exact", "agent-api", "hot-key")
	cfg.Requests = 2_000
	cfg.Progress = &p
	cfg.Parallel = 1
	cfg.SoFar = func([]results.Run) { seen = append(seen, p.Share()) }
	if _, err := sim.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[0] < 0.5 || seen[1] != 1 {
		t.Errorf("after each of two strategies: %v", seen)
	}
}
