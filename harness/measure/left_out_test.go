package measure

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// soonGone has little time pass between two questions to a store. Each may be answered
// late: the machine may be busy.
func soonGone(t *testing.T) {
	timeout := goneTimeout
	pauses := gonePauses
	t.Cleanup(func() {
		goneTimeout = timeout
		gonePauses = pauses
	})
	goneTimeout = time.Minute
	gonePauses = []time.Duration{time.Millisecond, 20 * time.Millisecond}
}

// onRun is told of each run that begins.
type onRun struct {
	silent
	running func(strategy string, round int)
}

func (o onRun) Running(strategy string, round, _ int) { o.running(strategy, round) }

// TestStoreThatIsGone: a Redis ends in the first of three rounds. A strategy that needs
// it is left out from then on, and one that does not is measured as if nothing had
// happened. With -tags long that one needs PostgreSQL, and nothing otherwise.
func TestStoreThatIsGone(t *testing.T) {
	soonGone(t)
	storetest.Redis(t) // or skip
	other := testenv.Pick("exact", "pg-conditional")
	list := []string{other, "incr-expire", "incr-expire-atomic"}
	// The seed decides the order of the first round.
	order := func(last int) (s uint64) {
		for rand.New(seed.NewSource(s, seed.RoundOrder, 1)).Perm(len(list))[len(list)-1] != last {
			s++
		}
		return s
	}
	for _, c := range []struct {
		name, during string
		seed         uint64
		// runs by strategy, and of those the ones that do not count
		runs, invalid map[string]int
		skipped       []string
	}{
		{"beside a strategy that does without it", other, order(0),
			map[string]int{other: 3, "incr-expire": 1, "incr-expire-atomic": 1}, map[string]int{},
			[]string{"incr-expire: left out from round 2 of 3 on: redis does not answer any more: it was asked 3 times",
				"incr-expire-atomic: left out from round 2 of 3 on: "}},
		{"under a strategy that needs it", "incr-expire", order(1),
			map[string]int{other: 3, "incr-expire": 1, "incr-expire-atomic": 1}, map[string]int{"incr-expire": 1},
			[]string{"incr-expire: left out from round 2 of 3 on: redis",
				"incr-expire-atomic: left out from round 2 of 3 on: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, err := redis.Open(t.Context(), "process", stores.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }() // which says that it has ended
			plan, err := harness.NewPlan(strings.Join(list, ","), "link-hits", "steady")
			if err != nil {
				t.Fatal(err)
			}
			plan.Workers = 4
			plan.Seed = c.seed
			plan.Duration = 30 * time.Millisecond
			plan.Load = harness.Closed()
			plan.Stores = setOf(t, server)
			if other == "pg-conditional" {
				plan.Stores = setOf(t, server, storetest.Postgres(t))
			}
			report, err := Measure(t.Context(),
				Config{Plan: plan, Rounds: 3, ReferenceLength: 10 * time.Millisecond,
					Observer: onRun{running: func(strategy string, round int) {
						if strategy == c.during && round == 1 {
							if err := syscall.Kill(server.PID(), syscall.SIGKILL); err != nil {
								t.Error(err)
							}
						}
					}}})
			if err != nil {
				t.Fatal(err)
			}
			runs := map[string]int{}
			invalid := map[string]int{}
			for _, r := range report.Runs {
				runs[r.Strategy]++
				if !r.Audit.Valid {
					invalid[r.Strategy]++
				}
				if r.Audit.Valid && (r.Issued == 0 || len(r.Guarantee) == 0 || r.Repetition == 1 && r.Cost.Probe == nil ||
					hasReason(r, "reference-failed")) {
					t.Errorf("%s in round %d is not complete: %d requests, %+v, %+v", r.Strategy, r.Repetition, r.Issued, r.Guarantee,
						r.Audit)
				}
			}
			for _, name := range list {
				if runs[name] != c.runs[name] || invalid[name] != c.invalid[name] {
					t.Errorf("%s has %d runs, %d of them invalid; want %d and %d", name, runs[name], invalid[name], c.runs[name],
						c.invalid[name])
				}
			}
			slices.SortFunc(report.Skipped, func(a, b results.Skipped) int { return strings.Compare(a.Strategy, b.Strategy) })
			if len(report.Skipped) != len(c.skipped) {
				t.Fatalf("skipped %+v", report.Skipped)
			}
			for i, s := range report.Skipped {
				if text := s.Strategy + ": " + s.Reason; !strings.HasPrefix(text, c.skipped[i]) || strings.Contains(text, "\n") {
					t.Errorf("%q, want %q", text, c.skipped[i])
				}
			}
		})
	}
}

// hesitant is a store whose first answers are errors.
type hesitant struct {
	stores.Store
	asked int
	until int
	err   error
}

func (h *hesitant) Close() error { return nil }

func (h *hesitant) Usage(context.Context, stores.Scope) (stores.Usage, error) {
	h.asked++
	if h.asked <= h.until {
		return stores.Usage{}, h.err
	}
	return stores.Usage{}, nil
}

// TestStoreIsAskedAFewTimes: one that is started again, and one that says something
// else, are there.
func TestStoreIsAskedAFewTimes(t *testing.T) {
	soonGone(t)
	for _, c := range []struct {
		name         string
		until, asked int
		err          error
		gone         bool
	}{
		{"there", 0, 1, nil, false},
		{"started again", 2, 3, syscall.ECONNREFUSED, false},
		{"away", 9, 3, syscall.ECONNREFUSED, true},
		{"silent", 9, 3, context.DeadlineExceeded, true},
		{"says something else", 9, 1, errors.New("not in this mood"), false},
	} {
		h := &hesitant{until: c.until, err: c.err}
		set := stores.NewSet()
		if err := set.Add("other", h); err != nil {
			t.Fatal(err)
		}
		m := &measurement{cfg: &Config{Plan: harness.Plan{Surroundings: harness.Surroundings{Stores: set}}},
			leftOut: &leftOut{why: map[string]string{}}}
		m.ask(t.Context(), "other", "none")
		if got := m.leftOut.why["other"] != ""; got != c.gone || h.asked != c.asked {
			t.Errorf("%s: gone %t after %d questions, want %t after %d", c.name, got, h.asked, c.gone, c.asked)
		}
		m.ask(t.Context(), "other")
		if c.gone && h.asked != c.asked {
			t.Errorf("%s: it was asked again", c.name)
		}
	}
}
