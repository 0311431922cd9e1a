package cli

import (
	"strings"
	"testing"
)

// TestRefusalsNameACommandThatWorks runs what is printed where a policy or a workload does not
// fit, and where nobody chose a policy.
func TestRefusalsNameACommandThatWorks(t *testing.T) {
	tinySim := func(args ...string) []string { return append([]string{"sim", "--requests", "100"}, args...) }
	for _, args := range [][]string{
		tiny("--strategy", "monthly", "--policy", "agent-api"),
		tiny("--strategy", "honest", "--policy", "20 calls refilling 10 per 1s"),
		tiny("--strategy", "monthly", "--policy", "login", "--workload", "boundary", "--subjects", "5", "--loop", "closed"),
		tiny("--strategy", "honest", "--workload", "uploads", "--settle", "1ms", "--loop", "closed"),
		tiny("--strategy", "honest", "--workload", "uploads", "--policy", "tenant-uploads", "--loop", "closed"),
		tinySweep("--strategy", "monthly", "--policy", "agent-api", "--param", "workers=1,2"),
		tinySim("--strategy", "monthly", "--policy", "agent-api"),
		tinySim("--strategy", "honest", "--workload", "uploads"),
		{"sim", "monthly", "--policy", "login"},
	} {
		newPlace(t, nil)
		o := call(t.Context(), args...)
		_, line, found := strings.Cut(strings.TrimSpace(o.stderr), ": quotabench ")
		if o.code != ExitUsage || !found {
			t.Errorf("%q: exit %d, and no command: %s", args, o.code, o.stderr)
			continue
		}
		if again := call(t.Context(), words(line)...); again.code == ExitUsage || !strings.Contains(again.stderr, "Report: ") {
			t.Errorf("%q: %q ends with %d: %s", args, line, again.code, again.stderr)
		}
	}
	newPlace(t, nil)
	const chose = "no policy is named: this is --policy '50 requests per calendar month'\n"
	if o := call(t.Context(), tiny("--strategy", "monthly")...); o.code != ExitOK || !strings.Contains(o.stderr, chose) {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if o := call(t.Context(), "sim", "monthly"); o.code != ExitOK || !strings.Contains(o.stderr, "this is --preset "+presetOfItsOwn) {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if o := call(t.Context(), "sim", "sql-only"); !strings.HasSuffix(o.stderr, "; this runs it: quotabench run sql-only\n") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
