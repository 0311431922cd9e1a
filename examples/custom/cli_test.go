package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
)

// TestCommandLine: strategies, workloads with their options, and policies from
// outside are part of every command.
func TestCommandLine(t *testing.T) {
	sim := []string{"sim", "exact", "--policy", "10 searches per rolling 1m", "--requests", "400", "--workers", "4",
		"--out", t.TempDir()}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"list"}, 0, []string{"team-log", "bursts", "30 searches per rolling 1m"}},
		{[]string{"list", "workloads", "--json"}, 0, []string{`"name": "burst-size"`, "of a subject in a row"}},
		{append(sim, "--workload", "bursts:burst-size=15"), 0, []string{"10-searches-per-rolling-1m · bursts · 4 workers"}},
		{append(sim, "--workload", "steady:burst-size=15"), 2, []string{`--workload: steady: no option "burst-size"`}},
		{append(sim, "--workload", "bursts:burst-size=0"), 2, []string{`--workload: bursts: option burst-size: 0 is not 1 or more: give a whole number, 1 or more`}},
		{[]string{"run", "team-lag"}, 2, []string{"did you mean team-log?"}},
	} {
		var stdout, stderr bytes.Buffer
		if code := cli.Main(c.args, &stdout, &stderr); code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, code, c.code, stderr.String())
		}
		for _, want := range c.want {
			if text := stdout.String() + stderr.String(); !strings.Contains(text, want) {
				t.Errorf("%q: no %q in %s", c.args, want, text)
			}
		}
	}
}
