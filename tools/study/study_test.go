package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// requireNoiseRule is what the rule promises of comparisons of 10 against 10 rounds.
func requireNoiseRule(t *testing.T, s scenario, comparisons int) {
	t.Helper()
	r, err := study(s, comparisons)
	if err != nil {
		t.Fatal(err)
	}
	if r.FalseAlarms > 1 || r.Detected < 95 {
		t.Errorf("%s: %.2f %% of unchanged code fails, want at most 1 %%; %.1f %% of slowdowns are found, want 95 %%", s.name,
			r.FalseAlarms, r.Detected)
	}
}

func TestGeneratedSeries(t *testing.T) {
	for _, s := range scenarios(generated()) {
		switch s.name {
		case "random pairs, the machine drifts by 10 %", "random pairs, two stages", "two files",
			"two files, the machine drifts by 10 %":
			requireNoiseRule(t, s, 120)
		case "two files, the machine changes by 20 % in between",
			"two files, the machine drifts by 10 %, without a reference loop":
			r, err := study(s, 20)
			if err != nil || r.FalseAlarms > 0 || r.Inconclusive < 100 || r.Missed > 0 {
				t.Errorf("%s: %+v, want inconclusive (%v)", s.name, r, err)
			}
		case "two files, the machine drifts by 10 % and the reference loop does not":
			// The study can tell a rule that fails unchanged code.
			if r, err := study(s, 50); err != nil || r.FalseAlarms < 10 {
				t.Errorf("%s: %+v, want false alarms (%v)", s.name, r, err)
			}
		}
	}
}

// TestRecordedSeries checks the rule against series of real machines, if there are any.
func TestRecordedSeries(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(os.Getenv("QUOTABENCH_NOISE"), "*.csv"))
	if err != nil || os.Getenv("QUOTABENCH_NOISE") == "" || len(paths) == 0 {
		t.Skip("QUOTABENCH_NOISE names no directory of series")
	}
	for _, path := range paths {
		long, short, err := read(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(long) > 0 {
			all := scenarios(recorded(path, long))
			requireNoiseRule(t, all[0], 1000)
			requireNoiseRule(t, all[3], 1000)
			requireNoiseRule(t, all[6], 1000)
		}
		if len(short) < 2*rounds {
			continue
		}
		r, err := study(scenarios(recorded(path, [][]float64{short}))[0], 500)
		if err != nil || r.FalseAlarms > 1 || r.Missed > 0 || r.Inconclusive < 95 {
			t.Errorf("one run per machine: %+v, want inconclusive (%v)", r, err)
		}
	}
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	series := "value,starttime,VM_id\n"
	for range 50 {
		series += "100,2026-01-02,a\n,2026-01-03,a\n120,2026-01-01,a\n7,2026-01-01,b\n"
	}
	path := filepath.Join(dir, "s.csv")
	page := filepath.Join(dir, "page.md")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(path, series)
	long, short, err := read(path)
	if err != nil || len(long) != 2 || len(short) != 0 || long[0][0] != 120 || long[0][99] != 100 {
		t.Errorf("%v %v: %v", long, short, err)
	}
	write(page, "before\n"+begins+"old\n"+ends+"after\n")
	if err := replace(page, "| new |\n"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(page)
	if err != nil || string(b) != "before\n"+begins+"\n| new |\n\n"+ends+"after\n" {
		t.Errorf("%s (%v)", b, err)
	}
	write(page, "no place")
	write(path, "a,b\n1,2\n")
	_, _, err = read(path)
	if err == nil || !strings.Contains(err.Error(), "has no columns") || replace(page, "") == nil {
		t.Errorf("%v", err)
	}
}
