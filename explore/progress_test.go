package explore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// A search that is told to end at the first violation has less to do than one that
// looks on, and says so in its claim.
func TestFirst(t *testing.T) {
	cfg := explore.Config{Clients: 3, Limit: 1}
	all := run(t, "check-then-set", cfg)
	cfg.First = true
	first := run(t, "check-then-set", cfg)
	if len(first.Findings) == 0 || first.Runs >= all.Runs {
		t.Errorf("%d findings in %d runs, and %d in %d without --first", len(first.Findings), first.Runs, len(all.Findings),
			all.Runs)
	}
	if all.Capped != "" || !strings.Contains(first.Capped, "first violation") ||
		!strings.Contains(first.Claim, first.Capped) {
		t.Errorf("ended by %q and %q, claim %q", all.Capped, first.Capped, first.Claim)
	}
	cfg.Properties = []explore.Property{explore.Leak}
	if only := run(t, "check-then-set", cfg); only.Capped != "" {
		t.Errorf("all that was looked for is found, but: %q", only.Capped)
	}
}

// untried requires that a search ended before its first schedule, and says so.
func untried(t *testing.T, r *explore.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if r.Tried() || r.Claim != "" || !strings.Contains(r.Capped, "its time of 1ns was up") {
		t.Errorf("%s: %d runs, ended by %q, claims %q", r.Strategy, r.Runs, r.Capped, r.Claim)
	}
}

// A search whose time is up before its first schedule claims nothing, on every engine.
func TestTimeout(t *testing.T) {
	cfg := explore.Config{Clients: 2, Bounds: explore.Bounds{Timeout: time.Nanosecond}}
	r, err := explore.Run(t.Context(), testkit.Strategy(t, "lua-reserve"), cfg)
	untried(t, r, err)
	r, err = explore.Run(t.Context(), foreign(t, func(_ strategies.Env, p *quota.Policy) strategies.Allower {
		return &aligned{limit: p.Limit}
	}),
		explore.Config{Policy: policy(t, "1 request per fixed 1m"), Instances: 1,
			Bounds: explore.Bounds{Timeout: time.Nanosecond}})
	untried(t, r, err)
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "lua-reserve"), cfg)
	if err != nil || c.Complete || c.Schedules != 0 || c.Tried() {
		t.Errorf("%v, %+v", err, c)
	}
	cfg.Timeout = -1
	if _, err := explore.Run(t.Context(), testkit.Strategy(t, "lua-reserve"), cfg); err == nil {
		t.Error("a negative timeout is taken")
	}
}

// What a search has told of itself while it ran is in the end what it reports.
func TestProgressIsTold(t *testing.T) {
	var p explore.Progress
	r := run(t, "incr-expire", explore.Config{Clients: 3, Limit: 2, Properties: []explore.Property{explore.Leak},
		Progress: &p})
	if got, want := p.Read(), (explore.Sofar{Runs: r.Runs, States: int64(r.States), Depth: int64(r.Depth)}); got != want {
		t.Errorf("told %+v, found %+v", got, want)
	}
	var q explore.Progress
	c, err := explore.Enumerate(t.Context(), testkit.Strategy(t, "check-then-set"),
		explore.Config{Clients: 3, Limit: 2, Progress: &q})
	if err != nil {
		t.Fatal(err)
	}
	if got := q.Read(); got.Runs != c.Schedules || got.Share != 1 {
		t.Errorf("told %+v, counted %d schedules", got, c.Schedules)
	}
	half := explore.Config{Clients: 3, Limit: 2, Bounds: explore.Bounds{MaxSchedules: c.Schedules / 2}, Progress: &q}
	c, err = explore.Enumerate(t.Context(), testkit.Strategy(t, "check-then-set"), half)
	if err != nil {
		t.Fatal(err)
	}
	if got := q.Read(); got.Runs != c.Schedules || got.Share < 0.3 || got.Share > 0.7 {
		t.Errorf("told %+v, counted %d schedules, half of them", got, c.Schedules)
	}
}
