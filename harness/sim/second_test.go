package sim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// routed is a simulation of requests of one user and one route, one after the other: the user may have 100 an hour, and
// the route 30.
func routed(t *testing.T, list, kind string, requests int64) sim.Config {
	t.Helper()
	cfg := config(t, list, "100 requests per "+kind+" 1h", "steady")
	second := testkit.Policy(t, "30 requests per "+kind+" 2h")
	cfg.Second = &second
	cfg.Routes = 1
	cfg.Workers = 1
	cfg.Requests = requests
	cfg.Stream.Set("subjects", 1)
	cfg.Stream.Set("over-quota", 0)
	return cfg
}

// inTurnAndTogether are the strategies that serve two quotas, each with both ways to charge them.
const inTurnAndTogether = "fixed-window:both=after,fixed-window,sliding-log:both=after,sliding-log"

// One after the other, the user is charged for requests that the route rejects. Together, nobody is.
func TestTwoQuotas(t *testing.T) {
	testenv.Sequential(t)
	cfg := routed(t, inTurnAndTogether, "rolling", 90)
	for i, want := range []int64{60, 0, 60, 0} {
		r := run(t, cfg).Runs[i]
		valid(t, &r)
		if r.Admitted != 30 || r.Rejected != 60 || r.Leak.Units != 0 || r.FalseRejects.Possible != 0 ||
			r.Drift.Units != want {
			t.Errorf("%s: %d admitted, %d rejected, leak %d, %d false rejects, charged for nothing %d, want 30, 60, 0, 0 and %d",
				r.Params.Label, r.Admitted, r.Rejected, r.Leak.Units, r.FalseRejects.Possible, r.Drift.Units, want)
		}
		for _, c := range r.Guarantee {
			if c.Verdict == results.Broken {
				t.Errorf("%s: %s is broken", r.Params.Label, c.Formula)
			}
		}
	}
}

// Units that were charged for nothing are missing later. That is no false reject while the route has none left, and one
// once it has, although the user has admitted 60 of 100.
func TestChargedForNothingIsRejectedLater(t *testing.T) {
	testenv.Sequential(t)
	for second, want := range map[string][2]int64{
		"30 requests per fixed 2h": {30, 0}, "30 requests per fixed 1m": {60, 70},
	} {
		cfg := routed(t, "fixed-window:both=after,fixed-window", "fixed", 190)
		*cfg.Second = testkit.Policy(t, second)
		cfg.Load = harness.OpenAt(1)
		cfg.Arrivals = "constant"
		late := run(t, cfg).Runs[0]
		valid(t, &late)
		if late.Admitted != want[0] || late.FalseRejects.Count != want[1] || late.Leak.Units != 0 {
			t.Errorf("%s: %d admitted, %d false rejects, leak %d, want %d and 0", second, late.Admitted,
				late.FalseRejects.Count, late.Leak.Units, want)
		}
		if together := run(t, cfg).Runs[1]; together.FalseRejects.Possible != 0 {
			t.Errorf("%s: %d false rejects of requests that are charged to both or none", second,
				together.FalseRejects.Possible)
		}
	}
}

// moody rejects every tenth request, by its first quota or by its second one in turn.
type moody struct {
	strategies.Strategy
	asked int
}

func (s *moody) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	s.asked++
	if s.asked%10 == 0 {
		return quota.Decision{BySecond: s.asked%20 == 0, Tier: quota.TierRedis}, nil
	}
	return s.Strategy.Take(ctx, req)
}

// What is rejected although both quotas have room is a false reject, whichever of the two is blamed.
func TestRejectedAlthoughBothHaveRoom(t *testing.T) {
	testenv.Sequential(t)
	cfg := routed(t, "fixed-window", "fixed", 30)
	wrap(&cfg, func(s strategies.Strategy) strategies.Strategy { return &moody{Strategy: s} })
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	if r.Admitted != 27 || r.FalseRejects.Count != 3 {
		t.Errorf("%d admitted, %d false rejects, want 27 and 3", r.Admitted, r.FalseRejects.Count)
	}
}

// userOnly forgets the route.
type userOnly struct{ strategies.Strategy }

func (s userOnly) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	req.Second.Policy = nil
	return s.Strategy.Take(ctx, req)
}

// forgetful has the first strategy of a plan forget second quotas.
func forgetful(cfg *sim.Config) {
	wrap(cfg, func(s strategies.Strategy) strategies.Strategy { return userOnly{s} })
}

// wrap changes the first strategy of a plan.
func wrap(cfg *sim.Config, change func(strategies.Strategy) strategies.Strategy) {
	m := *cfg.Strategies[0].Meta
	open := m.Open
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		s, err := open(ctx, env)
		return change(s), err
	}
	cfg.Strategies[0].Meta = &m
}

// The leak of a route's limit is found, and told apart.
func TestLeakOfTheSecondQuota(t *testing.T) {
	testenv.Sequential(t)
	cfg := routed(t, "fixed-window", "fixed", 90)
	forgetful(&cfg)
	r := run(t, cfg).Runs[0]
	valid(t, &r)
	if r.Admitted != 90 || r.Leak.Units != 60 || r.Leak.WorstUnits != 60 || r.Leak.PctOfLimit != 200 {
		t.Errorf("%d admitted, leak %+v, want 90 and 60 of one route", r.Admitted, r.Leak)
	}
	broken := ""
	for _, c := range r.Guarantee {
		if c.Verdict == results.Broken {
			broken += c.Formula + ";"
		}
	}
	if broken != "L, of the routes;L + instances x L, of the routes;" {
		t.Errorf("broken: %q", broken)
	}
	for _, reason := range r.Audit.Reasons {
		if reason.Code == "second-quota" {
			if !strings.Contains(reason.Detail,
				"of the routes, of 30-requests-per-fixed-2h, the leak is 60 requests") {
				t.Error(reason.Detail)
			}
			return
		}
	}
	t.Error("no note tells the quotas apart")
}

// Without routes, the second window is each subject's own: two subjects get 30 each, and one that is not asked for the
// second window leaks by what that lacks.
func TestTwoWindows(t *testing.T) {
	testenv.Sequential(t)
	cfg := routed(t, inTurnAndTogether, "rolling", 180)
	cfg.Routes = 0
	cfg.Stream.Set("subjects", 2)
	for i := range cfg.Strategies {
		r := run(t, cfg).Runs[i]
		valid(t, &r)
		if r.Admitted != 60 || r.Leak.Units != 0 || !strings.Contains(r.Params.Second, "30 requests per rolling 2h") {
			t.Errorf("%s: %d admitted, leak %d, second window %q, want 60 and 0", r.Params.Label, r.Admitted, r.Leak.Units,
				r.Params.Second)
		}
	}
	cfg = routed(t, "sliding-log", "rolling", 180)
	cfg.Routes = 0
	cfg.Stream.Set("subjects", 2)
	forgetful(&cfg)
	r := run(t, cfg).Runs[0]
	if want := r.Admitted - 60; r.Leak.Units != want || want == 0 {
		t.Errorf("%d admitted, leak %d, want %d", r.Admitted, r.Leak.Units, want)
	}
}

// A strategy that knows one quota takes no part, and what cannot be judged is refused.
func TestSecondQuotaIsRefused(t *testing.T) {
	cfg := routed(t, "memory-deque,fixed-window", "fixed", 9)
	if err := cfg.Complete(); err != nil {
		t.Fatal(err)
	}
	_, skipped := cfg.Split()
	if why := skipped["memory-deque"]; len(skipped) != 1 || !strings.Contains(why, "the policy has two") {
		t.Error(skipped)
	}
	for what, change := range map[string]func(*sim.Config){
		"routes":     func(c *sim.Config) { c.Routes = -1 },
		"different":  func(c *sim.Config) { c.Second = &c.Policy },
		"kept as":    func(c *sim.Config) { c.Archive = t.TempDir() },
		"given back": func(c *sim.Config) { c.Workload = config(t, "fixed-window", "agent-api", "uploads").Workload },
	} {
		c := routed(t, "fixed-window", "fixed", 9)
		change(&c)
		if err := c.Complete(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
