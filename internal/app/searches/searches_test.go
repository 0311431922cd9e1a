package searches

import (
	"fmt"
	"testing"

	"github.com/quotabench/quotabench/explore"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// TestUnrepeated: a service whose schedules do not repeat is clean by no search with a stopped clock, and wrong by one
// that finds something.
func TestUnrepeated(t *testing.T) {
	err := fmt.Errorf("%w: by its clock", explore.ErrNotDeterministic)
	for clock, want := range map[string]bool{"": true, "2026-01-01 00:00:00": false} {
		a := asking{cfg: explore.Config{Process: explore.Process{Service: "app", ServiceClock: clock}}}
		if got := a.repeatsStopped(err); got != want {
			t.Errorf("with the clock %q: %t", clock, got)
		}
	}
	sel := strategies.Selection{Meta: &strategies.Meta{Name: "http"}}
	for _, violated := range []string{"", "http: leak"} {
		x := exploration{moving: err, violated: violated, record: results.NewExploration()}
		x.unrepeated(sel)
		clean := violated == ""
		if len(x.record.Failed) > 0 != clean || len(x.record.Skipped) > 0 == clean || (x.invalid != "") != clean {
			t.Errorf("with the violation %q: failed %v, skipped %v, invalid %q", violated, x.record.Failed, x.record.Skipped,
				x.invalid)
		}
	}
}
