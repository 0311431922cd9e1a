package explore_test

import (
	"os"
	"testing"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) {
	if os.Getenv("QUOTABENCH_ISOLATED") != "" {
		for _, f := range fragiles() {
			strategies.Register(f)
		}
	}
	explore.ServeIsolated()
	storetest.Main(m)
}
