package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// patiently calls a command line with a --decision-timeout that is doubled until the other
// strategy, which returns, is in time on a busy machine too. It returns the directory.
func patiently(t *testing.T, dir string, prepare func(), args ...string) (outcome, string) {
	t.Helper()
	for patience := 50 * time.Millisecond; ; patience *= 2 {
		prepare()
		out := dir + "-" + patience.String()
		o := call(t.Context(), append(args, "honest:color=blue", "honest", "--decision-timeout", patience.String(), "--out",
			out)...)
		if patience > time.Minute || !lateIn(out) {
			return o, out
		}
		t.Logf("%q: honest did not return in %v", args, patience)
	}
}

// lateIn reports whether a record says that a call of honest did not return.
func lateIn(dir string) bool {
	if x, err := codec.ReadExploration(filepath.Join(dir, files.ExplorationName)); err == nil {
		return slices.ContainsFunc(x.Failed, func(f results.FailedExplore) bool { return f.Strategy == "honest" })
	}
	f, err := codec.Read(filepath.Join(dir, files.ResultsName))
	return err == nil && slices.ContainsFunc(f.Runs, func(r results.Run) bool {
		return r.Params.Label == "honest" && (r.DidNotReturn > 0 || r.Audit.Has("did-not-return"))
	})
}

// A strategy that never returns, and one that panics, have the command exit with 3, one
// line about it and the stack in the record, while the other strategy is reported.
func TestAstray(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	hang := func() { select {} }
	for _, c := range []struct {
		name, code string
		at         *hook
		bad        func()
	}{
		{"hung", "did-not-return", &onBlue, hang},
		{"panics", "strategy-panicked", &onBlue, func() { panic("planted\npanic") }},
		{"hung-opening", "did-not-return", &onOpen, hang},
		{"hung-setting-up", "did-not-return", &onProvision, hang},
	} {
		if c.at != &onBlue && !testenv.Pick(false, true) { // it is waited for longer
			continue
		}
		c.at.set(c.bad)
		for mode, args := range map[string][]string{
			"run":     {"--rounds", "1", "--loop", "closed", "--requests", "400", "--workers", "2", "--redis", "embedded"},
			"sim":     {"--requests", "400"},
			"explore": nil,
		} {
			o, dir := patiently(t, c.name+"-"+mode, func() {}, append([]string{mode}, args...)...)
			last := o.stderr[strings.LastIndex(strings.TrimSpace(o.stderr), "\n")+1:]
			if o.code != exit.Failed || !strings.Contains(last, "honest:color=blue") ||
				strings.Contains(o.stdout+o.stderr, "goroutine ") {
				t.Errorf("%s %s: exit %d, %s%s", mode, c.name, o.code, o.stdout, o.stderr)
			}
			if mode != "explore" && (!strings.Contains(last, c.code) || !strings.Contains(o.stdout, "INVALID  "+c.code)) {
				t.Errorf("%s %s: no %s in %s%s", mode, c.name, c.code, o.stdout, o.stderr)
			}
			file := map[bool]string{true: files.ExplorationName, false: "results.json"}[mode == "explore"]
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !strings.Contains(string(b), "astray_test.go") || !strings.Contains(string(b), `"stack": "goroutine `) {
				t.Errorf("%s %s: %v, no stack in\n%s", mode, c.name, err, b)
			}
			if n := strings.Count(o.stdout, "honest"); n < 1 {
				t.Errorf("%s %s: the other strategy is not reported: %s", mode, c.name, o.stdout)
			}
		}
		c.at.clear()
	}
}

// TestAstrayAmidASearch: what was searched before the strategy ended the search is shown
// and written, and nothing is claimed.
func TestAstrayAmidASearch(t *testing.T) {
	newPlace(t, nil)
	defer onBlue.clear()
	var n atomic.Int64
	onBlue.set(func() {
		if n.Add(1) > 24 {
			select {}
		}
	})
	o, dir := patiently(t, "out", func() { n.Store(0) }, "explore")
	if o.code != exit.Failed || !strings.Contains(o.stdout, "NOTHING IS CLAIMED: the strategy does not return in ") ||
		!strings.Contains(o.stdout, "\nhonest, ") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	x, err := codec.ReadExploration(filepath.Join(dir, files.ExplorationName))
	if err != nil || len(x.Searches) != 2 || len(x.Failed) != 1 || x.Failed[0].Stack == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	if s := x.Searches[0]; s.Runs == 0 || s.Claim != "" || len(s.Withheld) != 1 || s.Withheld[0].Code != "did-not-return" {
		t.Errorf("%+v", s)
	}
}
