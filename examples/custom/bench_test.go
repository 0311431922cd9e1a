package main

import (
	"testing"

	"github.com/quotabench/quotabench/harness/bench"
)

// BenchmarkStrategies measures this module's strategies, and those it is compared
// with, under every workload: go test -run '^$' -bench /strategy=team-log.
func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
