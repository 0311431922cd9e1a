//go:build unix

package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/tools/program"
)

// fake is a side whose command line is a shell script.
func fake(t *testing.T, script string) *side {
	t.Helper()
	program := filepath.Join(t.TempDir(), "quotabench")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nset -e\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &side{root: t.TempDir(), built: map[string]string{cli: program}, helps: map[string]string{}}
}

// listing lists two strategies, of which no side can simulate or search the second.
const listing = `case $1 in list) printf 'STRATEGIES\n  one   documented\n      what it does\n  two   documented\n\nOPTIONS\n  one:x\n'; exit;; esac
case $2 in two) exit 2;; esac
`

// sides makes a tool of two scripts, with reasons for what differs.
func sides(t *testing.T, base, here, reasons string) *tool {
	t.Helper()
	x := &tool{dir: t.TempDir(), named: "abc", base: fake(t, listing+base), here: fake(t, listing+here)}
	folder := filepath.Join(x.here.root, "internal", "instrument")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "differences.tsv"), []byte(reasons), 0o600); err != nil {
		t.Fatal(err)
	}
	return x
}

func recording(text string) string {
	return "mkdir out\ncat >out/results.json <<'EOF'\n" + `{"runs":[` + text + "]}\nEOF\n"
}

// TestCompareSimulations plants hashes and decisions that are the same and that are not.
func TestCompareSimulations(t *testing.T) {
	const (
		a       = `{"trace":"aa","issued":10,"admitted":5,"leak":{"units":1},"false_rejects":{"count":0}}`
		b       = `{"trace":"bb","issued":10,"admitted":5,"leak":{"units":1},"false_rejects":{"count":0}}`
		untold  = `{"issued":10,"admitted":5,"leak":{"units":1}}`
		leaks   = `{"issued":10,"admitted":6,"leak":{"units":2}}`
		reasons = "abc\t" + sameSeed + "\tone under adr-005-day\tmended\nabc\t" + sameSeed +
			"\tone under adr-008-month\tmended\nabc\t" + sameSeed + "\tone under adr-008-month-end\tmended\n"
	)
	for name, c := range map[string]struct {
		base, here, reasons          string
		same, explained, unexplained int
	}{
		"the same hash":                  {a, a, "", 3, 0, 0},
		"another hash":                   {a, b, "", 0, 0, 3},
		"another hash, with a reason":    {a, b, reasons, 0, 3, 0},
		"a reason against another":       {a, b, strings.ReplaceAll(reasons, "abc\t", "def\t"), 0, 0, 3},
		"a reason of the other check":    {a, b, strings.ReplaceAll(reasons, sameSeed, sameSchedules), 0, 0, 3},
		"no hash, the same decisions":    {untold, b, "", 3, 0, 0},
		"no hash, and one more admitted": {leaks, b, "", 0, 0, 3},
	} {
		x := sides(t, recording(c.base), recording(c.here), c.reasons)
		got, err := compareSimulations(t.Context(), x)
		if err != nil || got.compared != 3 || got.same != c.same || len(got.explained) != c.explained ||
			len(got.unexplained) != c.unexplained {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	x := sides(t, recording(a), "exit 2\n", "")
	if got, err := compareSimulations(t.Context(), x); err != nil || got.compared != 3 || len(got.unexplained) != 3 ||
		!strings.Contains(got.unexplained[0], "refused here") {
		t.Errorf("a side that refuses what was simulated before: %+v, %v", got, err)
	}
	x = sides(t, "exit 2\n", recording(a), "")
	if got, err := compareSimulations(t.Context(), x); err == nil {
		t.Errorf("nothing was compared: %+v", got)
	}
	x = sides(t, recording(a), "exit 130\n", "")
	if got, err := compareSimulations(t.Context(), x); err == nil {
		t.Errorf("a side that fails: %+v", got)
	}
}

func finding(steps string) string {
	return `echo '{"searches":[{"findings":[{"property":"leak","steps":[` + steps + `]}]}]}'` + "\nexit 1\n"
}

// TestCompareCounterexamples plants a schedule that is as long, shorter, longer and gone.
func TestCompareCounterexamples(t *testing.T) {
	for name, c := range map[string]struct {
		base, here  string
		same        int
		unexplained string
	}{
		"as long": {finding("{},{}"), finding("{},{}"), 1, ""},
		"shorter": {finding("{},{}"), finding("{}"), 1, ""},
		"longer":  {finding("{}"), finding("{},{}"), 0, "one, leak: 1 steps before, and here 2"},
		"refused": {finding("{}"), "exit 2\n", 0, "one: searched before, and refused here"},
		"gone":    {finding("{}"), `echo '{"searches":[{"findings":[]}]}'`, 0, "one, leak: 1 step before, and none found here"},
	} {
		got, err := compareCounterexamples(t.Context(), sides(t, c.base, c.here, ""))
		if err != nil || got.compared != 1 || got.same != c.same || strings.Join(got.unexplained, ";") != c.unexplained {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestNoCounterexampleCompared(t *testing.T) {
	if got, err := compareCounterexamples(t.Context(), sides(t, "exit 2\n", finding("{}"), "")); err == nil {
		t.Errorf("%+v", got)
	}
}

// TestUnexplainedFails: a difference without a reason is a row behind.
func TestUnexplainedFails(t *testing.T) {
	p := probe{name: "p", pkg: "no/such/package", group: theirsAndOurs,
		check: func(context.Context, *tool) (c checked, err error) {
			c.what = "the same"
			c.compared = 1
			c.differ(nil, "this", "1 before, and here 2")
			return c, nil
		}}
	code, out, errs := against(t, filepath.Join(t.TempDir(), "committed.tsv"), p)
	if code != program.Failed || !strings.Contains(out, "FAILS, and no reason is listed: this: 1 before, and here 2") ||
		!strings.Contains(errs, "the same: this") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

func TestStrategyNames(t *testing.T) {
	got := strategyNames("STRATEGIES\n  incr-expire  documented\n      a line of its own\n  gcra  reference\n\nOPTIONS " +
		"OF STRATEGIES\n  gcra:burst=<int>\n")
	if want := []string{"gcra", "incr-expire"}; !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDiffering(t *testing.T) {
	a := t.TempDir()
	b := t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(a, "same"): "1", filepath.Join(b, "same"): "1", filepath.Join(a, "other"): "1",
		filepath.Join(b, "other"): "2",
		filepath.Join(a, "alone"): "", filepath.Join(a, "provenance.json"): "1", filepath.Join(b, "provenance.json"): "2",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := differing(a, b); n != 2 || err != nil {
		t.Errorf("%d, %v, want 2", n, err)
	}
	if n, err := differing(t.TempDir(), t.TempDir()); err == nil {
		t.Errorf("nothing to compare gives %d", n)
	}
}

func TestLongJudged(t *testing.T) {
	got, err := longJudged("    long_test.go:41: 3000000 events: recorded in 1.5s (90 MiB), judged in 300ms (512 MiB)\n")
	if want := (sample{"judge by run": 0.01, "GiB": 0.5}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := longJudged("PASS\n"); err != nil || len(got) != 0 {
		t.Errorf("a side without the test: %v, %v", got, err)
	}
}
