package results_test

import (
	"runtime"
	"testing"

	"github.com/quotabench/quotabench/results"

	"github.com/quotabench/quotabench/internal/fixture"
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

// TestClaimed: the name of a design record stands without the number of older files.
func TestClaimed(t *testing.T) {
	for source, want := range map[string]string{
		"003 (ADR-005): enforced within 5 %": "ADR-005: enforced within 5 %", "ADR-008: one crosses": "ADR-008: one crosses", "": "", "Fig (a): b": "Fig (a): b",
	} {
		if got := (&results.Clause{Source: source}).Claimed(); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}
