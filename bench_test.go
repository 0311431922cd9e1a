package quotabench_test

import (
	"testing"

	"github.com/quotabench/quotabench/harness/bench"
	_ "github.com/quotabench/quotabench/stores/all"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// BenchmarkStrategies runs every registered strategy under every generated
// workload. What it reports stands at the package bench; benchstat reads it:
//
//	go test -bench . -count 10 | tee new.txt && benchstat old.txt new.txt
func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
