package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// TestStopsWhenDecided: a run without a number of rounds looks after 10, and says why it ended.
func TestStopsWhenDecided(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	o := call(t.Context(), "run", "--redis", "embedded", "--postgres", "embedded", "--requests", "400", "--loop", "closed",
		"--instances", "1",
		"honest", "--budget", "10m", "--out", "out")
	const says = "stopped after 10 rounds: order and verdicts are decided"
	if f := readResults(t); o.code != exit.OK || f.Ended != says || len(f.Runs) != 10 ||
		!strings.Contains(o.stdout, "Rounds: "+says+".") {
		t.Errorf("exit %d, %d runs, %q: %s\n%s", o.code, len(f.Runs), f.Ended, o.stderr, o.stdout)
	}
}

// TestEnded: what ended a run is said in its words, and nothing is if the rounds were given.
func TestEnded(t *testing.T) {
	open := func(n int) (runs []results.Run) {
		for i := range n {
			runs = append(runs, results.Run{Identity: results.Identity{Strategy: "a", Form: "reference"}, Repetition: i + 1,
				Params:      results.Params{Label: "a", Quota: results.Quota{Limit: 50}},
				Requests:    results.Requests{Issued: 100, Admitted: 50},
				Correctness: results.Correctness{Leak: results.Leak{Trials: 1}}, Audit: results.Audit{Valid: true},
				Promises: results.Promises{Guarantee: []results.Clause{{Property: string(quota.PropertyLeak),
					Verdict: results.Undecided}}}})
		}
		return runs
	}
	for want, c := range map[string]struct {
		looking bool
		report  measure.Report
	}{
		"": {report: measure.Report{Runs: open(8)}},
		"12 rounds, all that were planned: order or verdicts are not all decided":                                           {true, measure.Report{Runs: open(12)}},
		"stopped after 9 rounds: the budget of 60 s is spent":                                                               {true, measure.Report{Runs: open(9), OutOfTime: true}},
		"stopped after 1 round: the budget of 60 s is spent; intervals of timings need 6 rounds, so give a longer --budget": {false, measure.Report{Runs: open(1), OutOfTime: true}},
	} {
		s := group.New(group.Run)
		s.Looking = c.looking
		if got := ended(s, &measure.Config{}, time.Minute, &c.report, &results.File{Kind: results.Measured}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
