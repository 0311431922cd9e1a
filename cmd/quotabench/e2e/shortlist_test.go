package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// TestRunWithoutNames: a run that names no strategy measures at most six, says why it measures no other, and
// recommends one that meets the conditions.
func TestRunWithoutNames(t *testing.T) {
	testenv.Sequential(t)
	for name, c := range map[string]struct {
		args  []string
		code  int
		unmet string
		says  string
	}{
		"recommends": {nil, exit.OK, "", "The catch of "},
		"nothing does it": {[]string{"--require", "all-commands>1000"}, exit.Gate, "all-commands>1000",
			"does not meet all-commands>1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			args := []string{"run", "--policy", "contact-form", "--rounds", "1", "--requests", "400", "--loop", "closed",
				"--workers", "4", "--redis", "embedded", "--postgres", "embedded", "--out", "out"}
			var out, errs bytes.Buffer
			if code := cli.Main(append(args, c.args...), &out, &errs); code != c.code {
				t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("%q is not printed:\n%s", c.says, out.String())
			}
			file, err := codec.Read(filepath.Join("out", "results.json"))
			if err != nil {
				t.Fatal(err)
			}
			checkConsidered(t, &file, c.unmet)
		})
	}
}

// checkConsidered checks what became of a few strategies, and of all that were measured.
func checkConsidered(t *testing.T, file *results.File, unmet string) {
	t.Helper()
	considered := map[string]results.Considered{}
	for _, c := range file.Considered {
		considered[c.Strategy] = c
	}
	for strategy, want := range map[string]codes.Cause{
		"gcra": codes.OverLimit, "memory-deque": codes.OverLimit, "check-then-set": codes.NeverResets,
		"sliding-log": codes.OtherWindows, "etcd-counter": codes.CannotRun,
	} {
		if got := considered[strategy]; got.Cause != want || got.Outcome == codes.Taken {
			t.Errorf("%s: %+v, want %s", strategy, got, want)
		}
	}
	measured := map[string]bool{}
	for i := range file.Runs {
		measured[file.Runs[i].Params.Label] = true
	}
	if len(measured) == 0 || len(measured) > 6 {
		t.Errorf("%d strategies were measured", len(measured))
	}
	for label := range measured {
		c := considered[label]
		if unmet == "" && c.Outcome != codes.Taken {
			t.Errorf("%s was measured: %+v", label, c)
		}
		if unmet != "" && (c.Cause != codes.NotMet || !strings.HasPrefix(c.Condition, unmet)) {
			t.Errorf("%s: %+v", label, c)
		}
	}
}
