package results_test

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

// TestClaimed: the name of a design record stands without the number of older files.
func TestClaimed(t *testing.T) {
	for source, want := range map[string]string{
		"003 (ADR-005): enforced within 5 %": "ADR-005: enforced within 5 %", "ADR-008: one crosses": "ADR-008: one crosses",
		"": "", "Fig (a): b": "Fig (a): b",
	} {
		if got := (&results.Clause{Source: source}).Claimed(); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}
