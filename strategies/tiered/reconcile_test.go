package tiered_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// whole is all that an instance can do.
type whole interface {
	strategies.Strategy
	strategies.Refunder
	strategies.Committer
	strategies.Viewer
	strategies.Provisioner
	strategies.Jobber
	strategies.Meter
	strategies.Screener
}

// attacked is an instance with two jobs more: one raises the limit in Redis once, and the
// other looks every 100 ms whether it is still raised.
type attacked struct {
	whole
	redis  redis.UniversalClient
	prefix string
	limits string // key of the agent's limits
	done   bool
	wrong  *time.Duration
}

const (
	planted   = 1_000_000
	lookEvery = 100 * time.Millisecond
)

func (a *attacked) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	a.limits = a.prefix + "limits:" + string(req.Subject)
	return a.whole.Take(ctx, req)
}

func (a *attacked) Jobs() []strategies.Job {
	attack := func(ctx context.Context) (bool, error) {
		if a.done {
			return false, nil
		}
		a.done = true
		return true, a.redis.HSet(ctx, a.limits, "api_requests_max", planted).Err()
	}
	look := func(ctx context.Context) (bool, error) {
		if a.redis.HGet(ctx, a.limits, "api_requests_max").Val() == strconv.Itoa(planted) {
			*a.wrong += lookEvery
		}
		return false, nil
	}
	return append(a.whole.Jobs(),
		strategies.Job{Name: "attack", Singleton: true, Every: 7 * time.Second, Run: attack},
		strategies.Job{Name: "look", Singleton: true, Every: lookEvery, Run: look})
}

// simulate has one agent with 100 requests per hour ask for 300 in a minute of virtual time,
// and says for how long Redis had the limit that an attacker planted after 7 s.
func simulate(t *testing.T, options quota.Options, attack bool) (r results.Run, wrong time.Duration) {
	t.Helper()
	registered := testkit.Strategy(t, "three-tier").Meta
	m := *registered
	if open := m.Open; attack {
		m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			in, err := open(ctx, env)
			if err != nil {
				return nil, err
			}
			return &attacked{whole: in.(whole), redis: strategies.Redis(env), prefix: env.Prefix, wrong: &wrong}, nil
		}
	}
	sel, err := m.Select(options)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := harness.NewPlan("three-tier", "100 requests per calendar hour", "steady")
	if err != nil {
		t.Fatal(err)
	}
	plan.Strategies = []strategies.Selection{sel}
	plan.Seed, plan.Load, plan.Arrivals, plan.Duration, plan.Instances = 1, harness.OpenAt(5), "constant", time.Minute, 2
	plan.Stream.Set("subjects", 1)
	report, err := sim.Run(t.Context(), sim.Config{Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	return report.Runs[0], wrong
}

// TestReconcileRepairs: what an attacker writes to Redis stays, or for at most a period.
func TestReconcileRepairs(t *testing.T) {
	kept, wrong := simulate(t, quota.Options{"lag": "0s"}, true)
	if kept.Leak.Units != 200 || wrong < 50*time.Second {
		t.Errorf("without a reconciliation: a leak of %d for %v; want all 200 to the end", kept.Leak.Units, wrong)
	}
	repaired, wrong := simulate(t, quota.Options{"lag": "0s", "reconcile": "5s"}, true)
	if repaired.Leak.Units > 5 || wrong <= 0 || wrong > 5*time.Second {
		t.Errorf("with one every 5 s: a leak of %d for %v; want one of less than a second, for up to 5 s",
			repaired.Leak.Units, wrong)
	}
}

// TestReconcileErases: the table is behind Redis by as long as a write-back waits. A round
// erases what was charged since then, and about as much again as the limit is admitted.
func TestReconcileErases(t *testing.T) {
	for reconcile, want := range map[string][2]int64{"0s": {0, 5}, "5s": {90, 110}} {
		r, _ := simulate(t, quota.Options{"reconcile": reconcile}, false)
		if r.Leak.Units < want[0] || r.Leak.Units > want[1] {
			t.Errorf("every %s: a leak of %d, want one of %v", reconcile, r.Leak.Units, want)
		}
	}
}

// TestReconcile: a round repairs what the cache has, leaves what it lacks to the next check,
// and neither doubts the table nor the set of agents over quota.
func TestReconcile(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "three-tier:reconcile=5s")
		p := policy(t, "agent-api", 10)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10}, strategies.Grant{Subject: "idle", Limit: 10, Used: 4})
		in.fill(p, 3)
		in.run("write-back")
		counts := s.prefix + "quota:" + string(agent)
		limits := s.prefix + "limits:" + string(agent)
		s.redis.HSet(t.Context(), counts, "api_requests", "none")
		s.redis.HSet(t.Context(), limits, "api_requests_max", planted)
		s.redis.SAdd(t.Context(), s.prefix+"over_quota", string(agent))
		in.run("reconcile")
		in.wantUsed(p, 3, 3)
		if n := in.measure("reconciled"); n != 2 {
			t.Errorf("%d fields are reconciled, want the count and the limit", n)
		}
		if limit := s.redis.HGet(t.Context(), limits, "api_requests_max").Val(); limit != "10" {
			t.Errorf("the limit is %s, want 10", limit)
		}
		if n := s.redis.Exists(t.Context(), s.prefix+"quota:idle").Val(); n != 0 {
			t.Error("an agent that the cache does not know has been put into it")
		}
		in.run("rebuild")
		if d := in.take(t.Context(), p, 1); d.Admitted || d.Tier != quota.TierFilter {
			t.Errorf("%+v, want a rejection by the filter: nothing leaves the set", d)
		}
		in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
		in.run("reconcile")
		in.wantUsed(p, 0, 0) // the table is wrong, and Redis now, too
	})
}
