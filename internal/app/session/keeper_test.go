package session

import (
	"io"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
)

// TestRecordIsWrittenSeldom: within a round, writing takes at most a fortieth of the time.
func TestRecordIsWrittenSeldom(t *testing.T) {
	for hours, want := range map[int64]bool{20: false, 38: false, 40: true} {
		wrote := clock.Nano() - hours*int64(time.Hour)
		k := &Keeper{Progress: terminal.NewProgress(io.Discard), Dir: &Dir{Path: t.TempDir()}, File: &results.File{},
			warned:  true,
			written: seldom{last: wrote, cost: int64(time.Hour)}}
		k.SoFar(nil)
		if (k.written.last != wrote) != want {
			t.Errorf("a record that takes an hour to write is written again after %d hours: %t", hours, !want)
		}
	}
}
