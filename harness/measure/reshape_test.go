package measure

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// clusterOf starts a cluster, and opens a client of it.
func clusterOf(t *testing.T, spec string) (*redis.Store, *goredis.ClusterClient) {
	t.Helper()
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), spec, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1, Redirected: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return s, c.Client().(*goredis.ClusterClient)
}

// TestSlotMovesInARun: callers follow the counters to another master, and none is wrong afterwards.
func TestSlotMovesInARun(t *testing.T) {
	testenv.Long(t)
	s, c := clusterOf(t, "process:cluster=3")
	r := broken(t, "incr-expire-atomic", "redis", "slot-moved", s)
	if r.Degraded+r.Errors > 0 || r.Drift.Units != 0 || len(r.Guarantee) == 0 {
		t.Errorf("%d without it (%s), drift %+v, guarantee %+v", r.Degraded+r.Errors, r.FirstError, r.Drift, r.Guarantee)
	}
	ranges, err := c.ClusterSlots(t.Context()).Result() //nolint:staticcheck // as stores/redis asks
	if err != nil || len(ranges) < 4 {
		t.Errorf("%d ranges of slots (%v): none has moved", len(ranges), err)
	}
}

// incremented counts in Redis by one command, and adds up what is left there when it is closed.
type incremented struct {
	client goredis.UniversalClient
	prefix string
	mu     *sync.Mutex
	asked  map[quota.Subject]bool
	left   *int64
}

func (s *incremented) key(of quota.Subject) string { return s.prefix + string(of) }

func (s *incremented) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d := quota.Decision{Admitted: true, Tier: quota.TierRedis, Remaining: -1}
	if r.ID >= bounds.WarmUpID {
		return d, nil
	}
	s.mu.Lock()
	s.asked[r.Subject] = true
	s.mu.Unlock()
	return d, s.client.IncrBy(ctx, s.key(r.Subject), r.Units).Err()
}

func (s *incremented) Used(ctx context.Context, of quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	n, err := s.client.Get(ctx, s.key(of)).Int64()
	if errors.Is(err, goredis.Nil) {
		err = nil
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: n, Known: true}}, err
}

func (s *incremented) Close(ctx context.Context) error {
	*s.left = 0
	for of := range s.asked {
		n, err := s.client.Get(ctx, s.key(of)).Int64()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
		*s.left += n
	}
	return nil
}

// losing is a cluster whose replicas get nothing of what the masters are told for a while before one of them is killed.
type losing struct {
	*redis.Store
	client *goredis.ClusterClient
}

func (l *losing) Break(ctx context.Context, fault string, scope stores.Scope) (func(context.Context) error, error) {
	cut := sync.Map{}
	for n := 0; n < 3; { // the cluster tells of each replica once it has been told something
		err := l.client.ForEachSlave(ctx, func(ctx context.Context, r *goredis.Client) error {
			cut.Store(r.Options().Addr, true)
			return errors.Join(r.ConfigSet(ctx, "masterauth", "wrong").Err(),
				r.Do(ctx, "CLIENT", "KILL", "TYPE", "master").Err())
		})
		err = errors.Join(err, clock.Wall{}.Sleep(ctx, 100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		n = 0
		cut.Range(func(_, _ any) bool { n++; return true })
	}
	return l.Store.Break(ctx, fault, scope)
}

// TestNodeKilledInARun: what a master had acknowledged, and its replica had not got, is reported as lost, to the unit.
func TestNodeKilledInARun(t *testing.T) {
	testenv.Long(t)
	s, c := clusterOf(t, "process:cluster=3,replicas=1")
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	sel := (&planted{}).selection()
	left := int64(0)
	sel.Needs = []strategies.Need{strategies.NeedRedis}
	state := &incremented{mu: new(sync.Mutex), asked: map[quota.Subject]bool{}, left: &left}
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		in := *state
		in.client = strategies.Redis(env)
		in.prefix = env.Prefix
		return &in, nil
	}
	plan.Strategies = []strategies.Selection{sel}
	plan.Workers, plan.Instances, plan.Seed, plan.Stores = 200, 2, 3, setOf(t, &losing{s, c})
	plan.Stream.Set("subjects", 24)
	plan.Stream.Set("over-quota", 0)
	plan.Policy.Limit, plan.Load, plan.Duration = 1_000_000, harness.OpenAt(200), 6*time.Second
	plan.Trouble = trouble.MustParse("redis:node-killed@0.2-0.3")
	report, err := Measure(t.Context(), Config{Plan: plan, Rounds: 1, NoReference: true})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Runs[0]
	lost, _ := r.Drift.Lost()
	// On a busy machine clients find broken connections later than an outage excuses. That costs the run its validity, and
	// no count.
	wrong := slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool {
		return x.Discards == codes.DiscardsCorrectness && x.Code != "errors"
	})
	if wrong || lost == 0 || r.Drift.Units >= 0 || int64(lost) != r.Admitted-left {
		t.Errorf("%v units lost, drift %+v; %d are admitted and %d are left; %+v", lost, r.Drift, r.Admitted, left, r.Audit)
	}
	if decided(r, 0, 0.2) == 0 || decided(r, 0.9, 1) == 0 || len(r.Guarantee) > 0 {
		t.Errorf("%d decided before, %d at the end; it is held to %+v", decided(r, 0, 0.2), decided(r, 0.9, 1), r.Guarantee)
	}
}
