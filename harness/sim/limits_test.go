package sim_test

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/testenv"
)

// TestLimitThatIsLoweredSlowly: until a store far away has the lower limit either one may
// be in force, for the series as for the verdict.
func TestLimitThatIsLoweredSlowly(t *testing.T) {
	testenv.Sequential(t)
	cfg := config(t, "three-tier-hardened:recall=0s", "agent-api", "steady")
	cfg.Topology.Regions, cfg.Topology.Home = []string{"us", "eu", "ap"}, 0.95
	cfg.Policy.Limit, cfg.Load, cfg.Duration = 300, harness.OpenAt(100), 4*time.Minute
	cfg.Every = -1
	cfg.LimitChanges = []harness.LimitChange{{At: 0.4, Limit: 200}}
	cfg.Stream.Set("subjects", 100)
	cfg.Stream.Set("popularity", "zipf:1")
	report := run(t, cfg)
	r := &report.Runs[0]
	valid(t, r)
	if r.Leak.Units == 0 {
		t.Error("what was drawn under the higher limit is not admitted: nothing is tested")
	}
}
