package results_test

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

func TestWindowText(t *testing.T) {
	for in, want := range map[string]string{
		"calendar-month": "calendar-month", "rolling 1h0m0s": "rolling 1h", "fixed 15m0s": "fixed 15m",
		"fixed 1m30s":     "fixed 1m30s",
		"rolling 1h30m0s": "rolling 1h30m", "fixed 10h0m0s": "fixed 10h", "fixed 100ms": "fixed 100ms",
		"fixed 1h0m5s":                 "fixed 1h0m5s",
		"bucket refilling 10 per 1m0s": "bucket refilling 10 per 1m",
	} {
		p := results.Params{Quota: results.Quota{Window: in}}
		if got := p.WindowText(); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
