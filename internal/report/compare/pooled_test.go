package compare_test

import (
	"testing"

	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// A percentile of a comparison is the one that reports have: of all kept rounds
// together, and not the middle of the rounds' own.
func TestPercentilesArePooled(t *testing.T) {
	f := record(one())
	for i := range f.Runs {
		r := &f.Runs[i]
		took := int64(1_000_000)
		if i == 0 {
			took = 100_000_000 // a tenth of all samples, and a p99 of one round of ten
		}
		h := results.NewHistogram()
		for range 1_000 {
			h.Record(took)
		}
		l, err := h.Latency()
		if err != nil {
			t.Fatal(err)
		}
		l.StallsP99 = 99
		r.Reference = &results.Distribution{Samples: 1_000, P99: 1_000_000, StallsP99: 99}
		p := *r
		p.Params.RatePerS = 100
		p.Service = l
		r.Paced = &p
	}
	for _, r := range files(t, f, f, compare.Options{}).Rows {
		if r.Figure == "p99" {
			if r.Base == nil || r.Head == nil || *r.Base < 99 || *r.Head != *r.Base {
				t.Errorf("%v and %v, want 100", r.Base, r.Head)
			}
			return
		}
	}
	t.Error("no p99 is compared")
}
