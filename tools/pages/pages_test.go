package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
)

// The committed records, and the pages that quote them.
const (
	baseline  = "../../results/baseline"
	committed = "../../docs"
)

// committedEvidence is read once: that takes seconds.
var committedEvidence = sync.OnceValues(func() (*Evidence, error) { return read(baseline) })

func evidence(t *testing.T) *Evidence {
	t.Helper()
	e, err := committedEvidence()
	if err != nil {
		t.Fatalf("%v (make -C tools baseline makes the records anew)", err)
	}
	return e
}

// TestPagesAreCurrent: the committed pages are those that this program writes from the
// committed records.
func TestPagesAreCurrent(t *testing.T) {
	out := t.TempDir()
	for _, dir := range []string{"strategies", "images", "claims"} {
		if err := os.CopyFS(filepath.Join(out, dir), os.DirFS(filepath.Join(committed, dir))); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(evidence(t), filepath.Join(out, "strategies")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"strategies", "images", "claims"} {
		t.Run(dir, func(t *testing.T) { current(t, filepath.Join(out, dir), filepath.Join(committed, dir)) })
	}
	same(t, out, committed, "faults.md")
}

// TestReportsAreCurrent: the committed text of each record is what this program writes from it.
func TestReportsAreCurrent(t *testing.T) {
	e := evidence(t)
	made, err := reports(e)
	if err != nil || len(made) != len(e.Runs)+len(e.Sweeps) {
		t.Fatalf("%d texts, %v", len(made), err)
	}
	for _, p := range made {
		if got, err := os.ReadFile(filepath.Join(baseline, p.Name)); err != nil || !bytes.Equal(got, p.Bytes) {
			t.Errorf("%s is not what make pages writes (%v): run it, and commit what it writes", p.Name, err)
		}
	}
}

// same compares a file that was made with the one that is committed, and returns it.
func same(t *testing.T, out, committed, name string) []byte {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(committed, name)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s in %s is not what make pages writes (%v): run make pages, and commit what it writes", name, committed,
			err)
	}
	return want
}

// current compares all files that were made with those that are committed.
func current(t *testing.T, out, committed string) {
	made, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range made {
		want := same(t, out, committed, f.Name())
		name := strings.TrimSuffix(f.Name(), ".md")
		if _, err := strategies.Lookup(name); err != nil && filepath.Base(committed) == "strategies" && Generated(want) &&
			f.Name() != Index {
			t.Errorf("docs/strategies/%s is of a strategy that is gone: remove it", f.Name())
		}
	}
}

// TestBaselineHasEveryStrategy: each took part in the committed run, was searched
// if it can be, or is skipped with the reason.
func TestBaselineHasEveryStrategy(t *testing.T) {
	const refresh = "run make -C tools baseline, and commit what it writes"
	f := recorded(t, "run")
	services := recorded(t, "run-services")
	frontier := recorded(t, "run-frontier")
	x, err := codec.ReadExploration(filepath.Join(baseline, "explore", "exploration.json"))
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	searched := map[string]bool{}
	for _, r := range slices.Concat(f.Runs, services.Runs, frontier.Runs) {
		run[r.Strategy] = run[r.Strategy] || r.Audit.Valid
	}
	for _, s := range f.Skipped {
		run[s.Strategy] = true
	}
	for _, s := range x.Searches {
		searched[s.Strategy] = true
	}
	for _, m := range strategies.All() {
		if m.Outside && m.NeedsStore("service") {
			continue // which is the user's own
		}
		if !run[m.Name] {
			t.Errorf("%s is not in the committed run, or no round of it counts: %s", m.Name, refresh)
		}
		if _, cannot := m.Excludes(strategies.ModeExplore); !cannot && !searched[m.Name] {
			t.Errorf("%s is not in the committed searches: %s", m.Name, refresh)
		}
	}
}

// decode reads a record that [TestPagesAreCurrent] has had verified.
// recorded is the committed run in a directory.
func recorded(t *testing.T, dir string) results.File {
	t.Helper()
	e := evidence(t)
	i := slices.Index(e.Names, dir)
	if i < 0 {
		t.Fatalf("%s has no run", dir)
	}
	return e.Runs[i]
}
