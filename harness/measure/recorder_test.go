package measure

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// TestHistogramsServeAgain: a pass records into the histograms of the one before it, which
// are empty by then.
func TestHistogramsServeAgain(t *testing.T) {
	forgetSpare()
	t.Cleanup(forgetSpare)
	pass := func() (used []*results.Histogram) {
		warm := newRecorder(1)
		warm.record(warm.stripe(0), oracle.Admitted, 0, false, 1)
		rec := warm.warmed(true)
		s := rec.stripe(0)
		for range 3 {
			rec.recordOpen(s, oracle.Rejected, 0, false, openTimes{3, 2, 1})
		}
		all := rec.merge(func(s *stripe) *[3 * maxTiers]*results.Histogram { return &s.latency })
		if n := all[slot(oracle.Rejected, 0)].Count(); n != 3 {
			t.Errorf("%d requests were recorded, want 3", n)
		}
		for _, h := range slices.Concat(s.latency[:], s.service[:], []*results.Histogram{s.wait}) {
			if h != nil {
				used = append(used, h)
			}
		}
		rec.release()
		return used
	}
	first := pass()
	for _, h := range pass() {
		if !slices.Contains(first, h) {
			t.Error("the second pass made a histogram")
		}
	}
	if len(first) != 5 {
		t.Errorf("a pass has %d histograms, want 5", len(first))
	}
}
