package measure

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/stores"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// costly sends a known number of commands per decision: two one by one, and
// three in one pipeline. It leaves one key without a time to live per subject.
type costly struct {
	planted
	redis  redis.UniversalClient
	prefix string
}

func (c *costly) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	key := c.prefix + string(r.Subject)
	if err := c.redis.Incr(ctx, key).Err(); err != nil {
		return quota.Decision{}, err
	}
	if err := c.redis.Get(ctx, key).Err(); err != nil {
		return quota.Decision{}, err
	}
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 3 {
			p.Exists(ctx, key)
		}
		return nil
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return c.planted.Take(ctx, r)
}

func TestPlantedCost(t *testing.T) {
	testenv.Sequential(t)
	c := &costly{}
	sel := c.selection()
	sel.Needs = []strategies.Need{strategies.NeedRedis}
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		c.redis = strategies.Redis(env)
		c.prefix = env.Prefix
		return c, nil
	}
	redis := storetest.EmbeddedRedis(t)
	r := measureOne(t, &c.planted, "hot-key", func(cfg *Config) {
		cfg.Strategies, cfg.base, cfg.Workers, cfg.Stores = []strategies.Selection{sel}, nil, 4, setOf(t, redis)
	})
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Cost.Commands != 5 || r.Cost.RoundTrips != 3 || r.Cost.SQL != 0 {
		t.Errorf("cost %+v, want 5 commands in 3 round trips", r.Cost)
	}
	// Warm-up subjects have keys as well, as many as it came to.
	if n := r.Cost.KeysAtEnd; n <= 100 || n > 100+warmSubjects || r.Cost.KeysWithoutTTL != n {
		t.Errorf("%d keys, %d of them without a time to live", r.Cost.KeysAtEnd, r.Cost.KeysWithoutTTL)
	}
	p := r.Cost.Probe
	if p == nil || p.Admitted == nil || p.Rejected == nil || p.First.Commands != 5 || p.Admitted.Commands != 5 ||
		p.Rejected.RoundTrips != 3 {
		t.Errorf("probe %+v", p)
	}
	if left, err := redis.Admin().Keys(t.Context(), c.prefix+"*").Result(); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}

// measureReal runs registered strategies on embedded Redis.
func measureReal(t *testing.T, list, policy, workload string, change func(*Config)) map[string]results.Run {
	t.Helper()
	plan, err := harness.NewPlan(list, policy, workload)
	if err != nil {
		t.Fatal(err)
	}
	plan.Workers = 8
	plan.Seed = 3
	plan.Duration = 300 * time.Millisecond
	plan.Stores = setOf(t, storetest.EmbeddedRedis(t))
	cfg := Config{Plan: plan, Rounds: 1, NoReference: true}
	if change != nil {
		change(&cfg)
	}
	if _, skipped := cfg.Split(); len(skipped) > 0 {
		t.Fatalf("skipped: %v", skipped)
	}
	report, err := Measure(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]results.Run{}
	for _, r := range report.Runs {
		out[r.Params.Label] = r
	}
	return out
}

func TestOutageFailsClosed(t *testing.T) {
	r := measureLonger(t, "incr-expire", "link-hits", "steady", func(c *Config) {
		c.Load = harness.Closed()
		c.Trouble = trouble.MustParse("redis:away@0.4-0.7")
	}, func(r results.Run) bool { return r.Degraded > 0 })["incr-expire"]
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Degraded == 0 {
		t.Error("no decision was made without the store")
	}
	if r.Leak.Units != 0 {
		t.Errorf("leak %+v: it fails closed", r.Leak)
	}
	if r.FalseRejects.Count == 0 {
		t.Error("rejecting everything during the outage shows as no false reject")
	}
}

// TestComesBackEmpty: the month that Redis has forgotten begins anew, and a clause
// that does not tolerate that is not judged.
func TestComesBackEmpty(t *testing.T) {
	r := measureLonger(t, "incr-expire", "link-hits", "steady", func(c *Config) {
		c.Load = harness.Closed()
		c.Policy.Limit = 10
		c.Stream.Set("subjects", 3)
		c.Trouble = trouble.MustParse("redis:empty@0.4-0.5")
	}, func(r results.Run) bool { // enough to use the limit up before the outage, and after it
		return decided(r, 0, 0.35) >= 100 && r.Degraded > 0 && decided(r, 0.7, 1) >= 100
	})["incr-expire"]
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Leak.Units == 0 || len(r.Guarantee) != 0 {
		t.Errorf("leak %+v, and it is held to %+v", r.Leak, r.Guarantee)
	}
}

func TestBoundaryIsJudgedAsRollingToo(t *testing.T) {
	testenv.Sequential(t)
	r := measureLonger(t, "incr-expire", "contact-form", "boundary", func(*Config) {}, func(r results.Run) bool {
		return decided(r, 0, 0.4) >= 200 && decided(r, 0.6, 1) >= 200 // of 20 subjects with a limit of 3
	})["incr-expire"]
	if !r.Audit.Valid {
		t.Fatalf("audit %+v", r.Audit)
	}
	if r.Leak.Units != 0 {
		t.Errorf("leak by its own windows: %+v", r.Leak)
	}
	if r.Rolling == nil || r.Rolling.WorstUnits != 6 || r.Rolling.Multiple != 2 {
		t.Errorf("rolling %+v, want twice the limit of 3", r.Rolling)
	}
}

func TestUploadsAreSettled(t *testing.T) {
	// with sessions of each fate
	r := measureLonger(t, "exact", "tenant-uploads", "uploads", func(*Config) {}, func(r results.Run) bool {
		s := r.Settlement
		return s == nil || s.Commits > 0 && s.Refunds > 0 && s.Abandoned > 0
	})["exact"]
	if !r.Audit.Valid || r.Settlement == nil {
		t.Fatalf("audit %+v, settlement %+v", r.Audit, r.Settlement)
	}
	s := r.Settlement
	if s.Commits == 0 || s.Refunds == 0 || s.Abandoned == 0 || s.Errors != 0 || s.Service.Samples == 0 {
		t.Errorf("settlement %+v", s)
	}
	if r.Leak.Units != 0 || r.FalseRejects.Count != 0 || r.Drift.Units != 0 {
		t.Errorf("leak %+v, false rejects %+v, drift %+v", r.Leak, r.FalseRejects, r.Drift)
	}
}

// TestFailedWorkStaysCharged: a strategy without refunds keeps the units of failed work. Callers that are through leave
// their last sessions unsettled.
func TestFailedWorkStaysCharged(t *testing.T) {
	p, err := harness.NewPlan("unlimited", "user-links", "uploads")
	if err != nil {
		t.Fatal(err)
	}
	p.Strategies = []strategies.Selection{new(planted).selection()}
	p.Policy.Limit = 1 << 40
	p.Requests = 400
	p.Workers = 3
	for option, value := range map[string]any{"fail-share": 1, "abandon-share": 0, "hold": time.Duration(0),
		"settle": time.Duration(0)} {
		p.Stream.Set(option, value)
	}
	report, err := Measure(t.Context(), Config{Plan: p, Rounds: 1, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Runs[0]
	if s := r.Settlement; r.Admitted != 400 || s.ChargedForNothing < 400-3 || s.ChargedForNothing > 400 ||
		s.Refunds+s.Commits+s.Errors != 0 {
		t.Errorf("%d admitted, %+v", r.Admitted, s)
	}
}

// setOf names open stores after their drivers.
func setOf(t testing.TB, list ...stores.Store) *stores.Set {
	t.Helper()
	set := stores.NewSet()
	for _, s := range list {
		if err := set.Add(s.Driver(), s); err != nil {
			t.Fatal(err)
		}
	}
	return set
}
