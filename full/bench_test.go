package full_test

import (
	"testing"

	_ "github.com/quotabench/quotabench/full"
	"github.com/quotabench/quotabench/harness/bench"
	_ "github.com/quotabench/quotabench/stores/all"
)

// BenchmarkStrategies runs the strategies of this module as that of the main module runs its own.
func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
