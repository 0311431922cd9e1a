package render_test

import (
	"runtime"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestSummariesAreSmall: a run takes a kilobyte in a file. A merged histogram kept
// for each would make 300 kB of it.
func TestSummariesAreSmall(t *testing.T) {
	const n = 20
	f := fixture.New(1, fixture.Many(n)...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := results.Summarise(f.Runs)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; per > 20_000 {
		t.Errorf("a summary keeps %d bytes", per)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(f)
}
