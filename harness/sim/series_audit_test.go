package sim

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// A series that counts more units than the verdict is named. It may count less: it does not
// know what follows from intervals.
func TestSeriesContradictsTheVerdict(t *testing.T) {
	policy := testkit.Policy(t, "10 requests per calendar hour")
	for series, want := range map[int64]bool{2: false, 3: false, 4: true} {
		p := &pass{drive: &drive{history: oracle.NewHistory(oracle.HistoryOptions{})}, policy: policy}
		p.drive.truth.leak = series
		p.audit(&oracle.Verdict{LeakUnits: 3})
		if got := slices.ContainsFunc(p.run.Audit.Reasons, func(r results.Reason) bool {
			return r.Code == "oracles-disagree"
		}); got != want {
			t.Errorf("%d units in the series, 3 in the verdict: found %t", series, got)
		}
	}
}
