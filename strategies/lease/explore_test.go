package lease

import (
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestSchedules: callers that share an instance, and instances that share a limit, never
// admit more together, also if callers end in the middle of a draw; and nobody waits for ever.
func TestSchedules(t *testing.T) {
	testenv.Sequential(t)
	sel, err := strategies.Parse("lease")
	if err != nil {
		t.Fatal(err)
	}
	always := []explore.Property{explore.Leak, explore.Guarantee, explore.Stuck, explore.TTL, explore.Negative}
	counts := append(always[:len(always):len(always)], explore.Drift, explore.Stranded)
	for _, c := range []struct {
		scripts   string
		instances int
		limit     int64
		faults    []quota.Fault
		wanted    []explore.Property
	}{
		{"take,take;take=2,take", 1, 5, nil, counts},
		{"take,take;take", 2, 4, nil, counts},
		{"take;take", 1, 5, []quota.Fault{quota.FaultCrash}, always},
		{"take;take", 1, 5, []quota.Fault{quota.FaultLostReply, quota.FaultOutage}, always},
		{"take,take;take", 2, 4, []quota.Fault{quota.FaultRetry}, always},
	} {
		scripts, err := explore.ParseScripts(c.scripts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), sel[0], explore.Config{
			Scripts: scripts, Instances: c.instances, Limit: c.limit, Faults: c.faults, Properties: c.wanted,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) > 0 || r.Capped != "" {
			t.Errorf("%s on %d instances, faults %v: %+v, ended by %q", c.scripts, c.instances, c.faults, r.Findings, r.Capped)
		}
		t.Logf("%s on %d instances, faults %v: %d states", c.scripts, c.instances, c.faults, r.States)
	}
}
