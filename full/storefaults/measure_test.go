package storefaults

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"

	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// measured is the run of one strategy in one round, without a reference loop.
func measured(t *testing.T, strategy string, store stores.Store, change func(*measure.Config)) results.Run {
	t.Helper()
	plan, err := harness.NewPlan(strategy, "link-hits", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Workers = 8
	plan.Seed = 3
	plan.Duration = 300 * time.Millisecond
	plan.Stores = stores.NewSet()
	if err := plan.Stores.Add(store.Driver(), store); err != nil {
		t.Fatal(err)
	}
	cfg := measure.Config{Plan: plan, Rounds: 1, NoReference: true}
	change(&cfg)
	report, err := measure.Measure(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs, skipped: %v", len(report.Runs), report.Skipped)
	}
	return report.Runs[0]
}
