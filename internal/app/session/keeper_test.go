package session

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// TestRecordIsWrittenSeldom: within a round, writing takes at most a fortieth of the time.
func TestRecordIsWrittenSeldom(t *testing.T) {
	for hours, want := range map[int64]bool{20: false, 38: false, 40: true} {
		wrote := clock.Nano() - hours*int64(time.Hour)
		k := &Keeper{Progress: terminal.NewProgress(io.Discard), Dir: &Dir{Path: t.TempDir()}, File: &results.File{},
			warned:  true,
			written: seldom{last: wrote, cost: int64(time.Hour)}}
		k.SoFar([]results.Run{{}})
		if (k.written.last != wrote) != want {
			t.Errorf("a record that takes an hour to write is written again after %d hours: %t", hours, !want)
		}
	}
}

// TestNothingMeasured: a round that was interrupted before its first run writes nothing, so that the directory is free
// for the next command.
func TestNothingMeasured(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	s := group.New(group.Run)
	made, err := MakeDir(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	file := results.File{Schema: results.SchemaVersion, Kind: results.Measured, Stores: map[string]results.Store{},
		Skipped: []results.Skipped{}, Runs: []results.Run{}, Provenance: *Provenance(t.Context())}
	if _, err := codec.Encode(file); err != nil {
		t.Fatal(err)
	}
	k := &Keeper{Progress: terminal.NewProgress(io.Discard), Dir: made, File: &file}
	k.EndRound()
	if err := made.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}
