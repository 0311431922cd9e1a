package settings

import (
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestNearest(t *testing.T) {
	names := []string{"workers", "workload", "rounds", "rate", "out"}
	for name, want := range map[string]string{
		"worker": "workers", "wrokers": "workers", "WORKERS": "workers", "round": "rounds", "raet": "rate",
		"": "", "nonsense": "", "o": "", "xyz": "", "workersandmore": "",
	} {
		got := nearest(name, names, "--")
		if want != "" {
			want = ": did you mean --" + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
