package e2e

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// TestCommandsOfTheAnswer: the commands that an answer names are ones that the command
// line takes, and say what the record had.
func TestCommandsOfTheAnswer(t *testing.T) {
	testenv.Sequential(t)
	t.Chdir(t.TempDir())
	run := func(change func(*results.Run)) []ranking.Untested {
		r := results.Run{
			Identity: results.Identity{Strategy: "incr-expire-atomic", Form: "hardened"}, Policy: "agent-api",
			Workload: "hot-key",
			Params: results.Params{Label: "incr-expire-atomic", Quota: results.Quota{Limit: 50, Unit: "requests"},
				Load: results.Load{
					Loop:    codes.ClosedLoop,
					Workers: 50, Instances: 1,
				}},
			Correctness: results.Correctness{Leak: results.Leak{Trials: 10}},
			Cost:        results.Cost{ProbeCost: results.ProbeCost{Commands: 1}},
			Stored:      []results.Stored{{Store: "redis"}},
			Audit:       results.Audit{Valid: true},
			Promises:    results.Promises{Guarantee: []results.Clause{{Property: string(quota.PropertyLeak), Verdict: results.Kept}}},
		}
		change(&r)
		f := results.File{Kind: results.Measured, Stores: map[string]results.Store{"redis": {Kind: "process"}},
			Runs: []results.Run{r}}
		return ranking.Of(f)[0].Untested
	}
	for name, c := range map[string]struct {
		change func(*results.Run)
		want   []string // of the configuration in force
	}{
		"all defaults": {func(*results.Run) {},
			[]string{"policy: agent-api", "workload: hot-key", "workers: 50", "limit: 50"}},
		"another limit": {func(r *results.Run) {
			r.Params.Limit = 20
			r.Params.Workers = 8
		}, []string{"limit: 20", "workers: 8"}},
		"a policy of a text": {func(r *results.Run) {
			r.Policy = "20-links-per-calendar-month"
			r.Params.Limit = 20
		}, []string{"limit: 20"}},
		"a small policy": {func(r *results.Run) {
			r.Policy = "user-links"
			r.Params.Limit = 20
		}, []string{"policy: user-links", "limit: 20"}},
		"a stream": {func(r *results.Run) {
			r.Workload = "steady"
			r.Params.Limit = 1000
			r.Params.Workload = map[string]string{"popularity": "zipf:1.1"}
		}, []string{"workload: steady:popularity=zipf:1.1", "limit: 1000"}},
		"instances by default": {func(r *results.Run) { r.Params.Instances = 2 }, []string{"instances: 2"}},
		"clocks and a client that repeats": {func(r *results.Run) {
			r.Params.Instances = 2
			r.Params.Retries = 2
			r.Params.DecisionTimeoutNS = 3e9
			r.Params.Trouble = trouble.MustParse("instance/0:clock=2s", "instance/1:clock=-2s@0.5")
		}, []string{"client:\n  - retries=2", "trouble:\n  - instance/0:clock=2s\n  - instance/1:clock=-2s@0.5",
			"decision-timeout: 3s"}},
	} {
		untested := run(c.change)
		if len(untested) < 2 {
			t.Fatalf("%s: %d things are not tested, want 2 or 3", name, len(untested))
		}
		for _, u := range untested {
			args := strings.Fields(u.Command)[1:]
			if args[0] == "run" {
				args = append(args, "--print-config")
			} else {
				args = append(args, "--max-states", "100")
			}
			var out, errs bytes.Buffer
			if code := cli.Main(args, &out, &errs); code != exit.OK && code != exit.Gate { // a search may find something
				t.Errorf("%s: %s: exit %d: %s", name, u.Command, code, errs.String())
			}
			for _, want := range c.want {
				if args[0] == "run" && !strings.Contains("\n"+out.String(), "\n"+want) {
					t.Errorf("%s: %s: the configuration in force lacks %q", name, u.Command, want)
				}
			}
		}
	}
}

// TestBrokenRecordIsNoFailure: decr-literal declares less than its design record promises.
// It keeps the one and breaks the other, and the exit code does not change.
func TestBrokenRecordIsNoFailure(t *testing.T) {
	testenv.Sequential(t)
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"sim", "decr-literal", "--requests", "300", "--verbose"}, &out,
		&errs); code != exit.OK {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	for _, want := range []string{"no leak: kept", "PROMISES OF THE DESIGN RECORDS", "BROKEN",
		"ADR-009 promises false rejects of at most 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, out.String())
		}
	}
}
