package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestMustName: what only makes sense for strategies that are named is refused without names, and the other way round.
func TestMustName(t *testing.T) {
	p := newPlace(t, nil)
	for args, want := range map[string]string{
		"--param workers=1,8":         "--param: name the strategies",
		"--until p99<5ms":             "--until: name the strategies",
		"--against ./other":           "--against: name the strategies",
		"honest --survive outage":     "--survive: it is for a run that names no strategy",
		"--survive nonsense":          `--survive: unknown fault "nonsense"`,
		"--policy nonsense":           "--policy: unknown policy",
		"--survive outage --budget 0": "--budget",
	} {
		o := call(t.Context(), append([]string{"run"}, strings.Fields(args)...)...)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %q, want %q", args, o.stderr, want)
		}
	}
	p.requireUntouched()
}

// TestConsidered: the record of a run without names says what became of each strategy, also if none is left to measure.
// In this program none is: what counts in memory forgets units if its only instance dies.
func TestConsidered(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), tiny("--quiet")...)
	if o.code != exit.Gate || !strings.Contains(o.stderr, "no strategy is left to measure") {
		t.Fatalf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	file := readResults(t)
	got := map[string]string{}
	for _, c := range file.Considered {
		got[c.Strategy] = string(c.Outcome) + " " + string(c.Cause)
	}
	for strategy, want := range map[string]string{
		"honest": "excluded leak", "liar": "excluded leak", "monthly": "excluded other-windows", "broken": "untried unsound",
	} {
		if got[strategy] != want {
			t.Errorf("%s: %q, want %q", strategy, got[strategy], want)
		}
	}
	if len(file.Runs) != 0 || file.Interrupted {
		t.Errorf("%d runs, interrupted: %t", len(file.Runs), file.Interrupted)
	}
	for _, want := range []string{
		"liar             admits 1 over a limit of 1: 2 steps, 2 clients\n",
		"monthly          serves other kinds of windows\n",
		"quotabench explore broken --policy agent-api --instances 1\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%q is not printed:\n%s", want, o.stdout)
		}
	}
}

// TestConsideredIsReported: a report that is made of a record again has the strategies that were left out.
func TestConsideredIsReported(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	call(t.Context(), tiny("--quiet")...)
	o := call(t.Context(), "report", "out")
	if o.code != exit.OK || !strings.Contains(o.stdout, "admits 1 over a limit of 1: 2 steps, 2 clients") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	page, err := os.ReadFile(filepath.Join("out", "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<code>quotabench explore liar --policy agent-api --instances 1</code>") {
		t.Error("report.html does not say how to repeat what speaks against liar")
	}
}
