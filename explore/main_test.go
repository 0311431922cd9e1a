package explore_test

import (
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) {
	if isolate.Dir() != "" {
		for _, f := range fragiles() {
			strategies.Register(f)
		}
		strategies.Register(wordyMeta())
	}
	harness.ServeIsolated()
	storetest.Main(m)
}
