package cli

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestRefusalsNameACommandThatWorks runs what is printed if a policy or a workload does not
// fit, and if nobody chose a policy.
func TestRefusalsNameACommandThatWorks(t *testing.T) {
	testenv.Sequential(t)
	tinySim := func(args ...string) []string { return append([]string{"sim", "--requests", "100"}, args...) }
	for _, args := range [][]string{
		tiny("monthly", "--policy", "agent-api"),
		tiny("honest", "--policy", "20 calls refilling 10 per 1s"),
		tiny("monthly", "--policy", "login", "--workload", "boundary:subjects=5", "--loop", "closed"),
		tiny("honest", "--workload", "uploads:settle=1ms", "--loop", "closed"),
		tiny("honest", "--workload", "uploads", "--policy", "tenant-uploads", "--loop", "closed"),
		tinySweep("monthly", "--policy", "agent-api", "--param", "workers=1,2"),
		tinySim("monthly", "--policy", "agent-api"),
		tinySim("honest", "--workload", "uploads"),
		{"sim", "monthly", "--policy", "login"},
	} {
		newPlace(t, nil)
		o := call(t.Context(), args...)
		_, line, found := strings.Cut(strings.TrimSpace(o.stderr), ": quotabench ")
		if o.code != exit.Usage || !found {
			t.Errorf("%q: exit %d, and no command: %s", args, o.code, o.stderr)
			continue
		}
		if again := call(t.Context(), words(line)...); again.code == exit.Usage ||
			!strings.Contains(again.stderr, "Report: ") {
			t.Errorf("%q: %q ends with %d: %s", args, line, again.code, again.stderr)
		}
	}
	newPlace(t, nil)
	const chose = "no --policy was given: using --policy '50 requests per calendar month'\n"
	if o := call(t.Context(), tiny("monthly")...); o.code != exit.OK || !strings.Contains(o.stderr, chose) {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if o := call(t.Context(), "sim", "monthly"); o.code != exit.OK || strings.Contains(o.stdout, "clocks differ") ||
		!strings.Contains(o.stderr, "using --preset "+presetOfItsOwn+", with clocks that agree\n") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if o := call(t.Context(), "sim", "sql-only"); !strings.HasSuffix(o.stderr,
		"; this runs it: quotabench run sql-only\n") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// TestSetsHaveTheirOwnPolicies: members of a set that serve no policy of the usual kind have one
// of the same limit.
func TestSetsHaveTheirOwnPolicies(t *testing.T) {
	testenv.Sequential(t)
	for _, args := range [][]string{tiny("*on*"), tiny("hon*:color=red,depth=2,month*"),
		{"sim", "*on*", "--requests", "100", "--instances", "1", "--out", "out"}} {
		newPlace(t, nil)
		if o := call(t.Context(), args...); o.code != exit.OK {
			t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
		}
		got := map[string]string{}
		for _, run := range readResults(t).Runs {
			got[run.Strategy] = fmt.Sprint(run.Policy, " ", run.Params.Limit, " ", run.Params.Window)
		}
		want := map[string]string{"honest": "agent-api 50 calendar-hour",
			"monthly": "50-requests-per-calendar-month 50 calendar-month"}
		if !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
	newPlace(t, nil)
	first := call(t.Context(), tiny("*on*", "--print-config")...)
	if err := os.WriteFile("run.yaml", []byte(first.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	again := call(t.Context(), "run", "--config", "run.yaml", "--print-config")
	if first.code != exit.OK || !strings.Contains(first.stdout, "policy: null") || again.stdout != first.stdout {
		t.Errorf("exit %d, %s%s, and again %s%s", first.code, first.stdout, first.stderr, again.stdout, again.stderr)
	}
}
