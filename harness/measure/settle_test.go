package measure

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// settling admits everything, and its job changes something in so many rounds after the
// pass, each of which takes a while.
type settling struct{ rounds int }

// settlingStep is what a round takes at least.
const settlingStep = 20 * time.Millisecond

func (s *settling) Take(context.Context, quota.Request) (quota.Decision, error) {
	return quota.Decision{Tier: quota.TierProcess, Admitted: true}, nil
}

func (s *settling) Close(context.Context) error { return nil }

func (s *settling) Used(context.Context, quota.Subject, *quota.Policy) ([]quota.Reading, error) {
	return []quota.Reading{{Tier: quota.TierProcess, Known: true}}, nil
}

func (s *settling) Jobs() []strategies.Job {
	return []strategies.Job{{Name: "settle", Singleton: true, Run: func(context.Context) (bool, error) {
		if s.rounds <= 0 {
			return false, nil
		}
		time.Sleep(settlingStep)
		s.rounds--
		return true, nil
	}}}
}

// TestCatchUp: jobs may need longer for what the warm-up left than a single round may take, and neither for ever.
func TestCatchUp(t *testing.T) {
	for _, c := range []struct {
		step  time.Duration // that a round takes
		left  int           // rounds
		takes time.Duration
		want  string
	}{
		{time.Second, 40, 40 * time.Second, ""},
		{time.Second, 1000, catchUpLimit + time.Second, "still have work 5m0s after the warm-up"},
		{time.Hour, 1, settleLimit, "job queue: context canceled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := clock.Wall{}.Now
			began := now()
			m := &measurement{cfg: &Config{Plan: harness.Plan{Callers: harness.Callers{DecisionTimeout: time.Second}}},
				timebase: &timebase{nano: func() int64 {
					return int64(now().Sub(began))
				}}}
			err := m.catchUp(t.Context(), &site{Session: &harness.Session{Jobs: []*harness.Job{{Job: strategies.Job{
				Name: "queue", Pending: func() bool { return c.left > 0 }, Run: func(ctx context.Context) (bool, error) {
					c.left--
					return true, clock.Wall{}.Sleep(ctx, c.step)
				},
			}}}}})
			if took := now().Sub(began); took != c.takes || (err == nil) != (c.want == "") || err != nil &&
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%d rounds of %v left after %v: %v, want %q after %v", c.left, c.step, took, err, c.want, c.takes)
			}
		})
	}
}

// Readings after jobs say how long the jobs took, and jobs that do not become idle are named.
func TestJobsSettle(t *testing.T) {
	w, err := workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	policy := testkit.Policy(t, "agent-api")
	for _, rounds := range testenv.Pick([]int{3}, []int{3, 1_000_000}) {
		meta := &strategies.Meta{
			Name: "settling", Doc: "has work left", Form: strategies.Baseline, Kinds: quota.Kinds(),
			Counts: quota.CountsAdmitted,
			Open: func(context.Context, strategies.Env) (strategies.Strategy, error) {
				return &settling{rounds: rounds}, nil
			},
		}
		report, err := Measure(t.Context(), Config{Rounds: 1, Plan: harness.Plan{
			Strategies: []strategies.Selection{{Meta: meta}}, Policy: policy,
			Traffic: harness.Traffic{Workload: w, Load: harness.Closed(), Duration: 20 * time.Millisecond},
			Workers: 2, Instances: 1,
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := &report.Runs[0]
		restless := slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool { return x.Code == "jobs-not-idle" })
		if restless != (rounds > 3) {
			t.Errorf("%d rounds: not idle: %t; %+v", rounds, restless, r.Audit.Reasons)
		}
		at := slices.IndexFunc(r.Drift.Tiers, func(d results.TierDrift) bool { return d.At == harness.AfterJobs })
		least := min(time.Duration(rounds)*settlingStep, settleLimit)
		if at < 0 || r.Drift.Tiers[at].SettledNS < int64(least) {
			t.Errorf("%d rounds: %+v, want %v or more", rounds, r.Drift.Tiers, least)
		}
	}
}
