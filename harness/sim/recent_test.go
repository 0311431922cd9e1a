package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// TestRecentTrace: keys of a window of recorded time hold that time, which is close to the wall clock's in a log of
// yesterday. That does not make the strategy one that reads the wall clock.
func TestRecentTrace(t *testing.T) {
	yesterday := clock.Wall{}.Now().Add(-24 * time.Hour).UTC().Truncate(time.Second)
	var rows strings.Builder
	rows.WriteString("time,subject\n")
	for i := range 200 {
		fmt.Fprintf(&rows, "%s,a\n", yesterday.Add(time.Duration(i)*50*time.Millisecond).Format(time.RFC3339Nano))
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, "incr-expire-atomic", "10 requests per fixed 1s", "trace")
	cfg.Stream.Set("trace", path)
	report := run(t, cfg)
	valid(t, &report.Runs[0])
	if got := report.Runs[0]; got.Admitted < 100 || got.Rejected < 80 {
		t.Errorf("%d admitted and %d rejected, of 20 requests per second", got.Admitted, got.Rejected)
	}
}
