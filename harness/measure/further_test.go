package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

// TestStoresNeeded: only what strategies need that can be measured at all, with their
// options, and what the measurement itself asks for.
func TestStoresNeeded(t *testing.T) {
	for _, x := range []struct {
		list, policy string
		change       func(*Config)
		want         []string
	}{
		{"exact", "agent-api", nil, []string{"redis"}}, // of the reference loop
		{"exact", "agent-api", func(c *Config) { c.NoReference = true }, nil},
		{"exact", "agent-api", func(c *Config) {
			c.Trouble = trouble.MustParse("postgres:away")
		}, []string{"postgres", "redis"}},
		{"redlock:n=3,redis-durable", "agent-api", nil, []string{"redis", "redis.2", "redis.3", "redis.durable"}},
		{"redlock:n=1", "agent-api", nil, []string{"redis"}},
		{"lua-reserve", "agent-api", nil, []string{"postgres", "redis"}},
		{"redis-wait", "receipt-email", nil, []string{"redis"}}, // which it cannot serve
	} {
		plan, err := harness.NewPlan(x.list, x.policy, "steady")
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Plan: plan}
		if x.change != nil {
			x.change(&c)
		}
		if got := c.StoresNeeded(); !slices.Equal(got, x.want) {
			t.Errorf("%s under %s: %q, want %q", x.list, x.policy, got, x.want)
		}
	}
}

// A service cannot be told that time goes faster.
func TestServicesAtAnotherSpeed(t *testing.T) {
	plan, err := harness.NewPlan("incr-expire", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	outside := *plan.Strategies[0].Meta
	outside.Outside = true
	outside.Needs = nil
	plan.Strategies[0].Meta = &outside
	for speed, refused := range map[float64]bool{0: false, 1: false, 60: true} {
		c := Config{Plan: plan}
		c.Stream.Set("speed", speed)
		if err := c.CannotRun(plan.Strategies[0]); (err != nil) != refused || refused &&
			!strings.Contains(err.Error(), ":speed=1") {
			t.Errorf("speed %g: %v", speed, err)
		}
	}
}

// A strategy whose store cannot be had says why.
func TestMissingStoreSaysWhy(t *testing.T) {
	plan, err := harness.NewPlan("redis-durable", "agent-api", "steady")
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t)
	if err := set.AddAbsent("redis.durable",
		stores.Info{Kind: stores.KindNone, Detail: "the planted reason"}); err != nil {
		t.Fatal(err)
	}
	c := Config{Plan: plan}
	c.Stores = set
	if err := c.CannotRun(plan.Strategies[0]); err == nil ||
		!strings.Contains(err.Error(), "redis.durable: the planted reason") {
		t.Errorf("%v", err)
	}
	c.Stores = nil
	if err := c.CannotRun(plan.Strategies[0]); err == nil || !strings.Contains(err.Error(), "--store redis.durable=SPEC") {
		t.Errorf("%v", err)
	}
}

// TestCrossSlot: a script over keys of several slots fails on a cluster, every time, and
// the run says so without being invalid; one over a single key works there.
func TestCrossSlot(t *testing.T) {
	testenv.Long(t)    // a cluster of three
	storetest.Redis(t) // or skip
	cluster, err := redisstore.Open(t.Context(), "process:cluster=3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	runs := measureReal(t, "lua-reserve,incr-expire-atomic", "agent-api", "hot-key", func(c *Config) {
		c.Stores, c.Policy.Limit, c.Load = setOf(t, cluster), 20, harness.Closed()
		c.Requests = 1000
		c.Duration = 0
	})
	r := runs["lua-reserve"]
	if !r.Audit.Valid || r.Issued == 0 || r.Errors != r.Issued || !strings.Contains(r.FirstError, "CROSSSLOT") {
		t.Errorf("%d errors of %d requests, the first %q, audit %+v", r.Errors, r.Issued, r.FirstError, r.Audit)
	}
	if !hasReason(r, "prescribed-errors") ||
		!strings.Contains(fmt.Sprint(r.Audit.Reasons), "which a Redis Cluster refuses") {
		t.Errorf("audit %+v", r.Audit)
	}
	if r := runs["incr-expire-atomic"]; !r.Audit.Valid || r.Errors != 0 || r.Admitted == 0 || r.Leak.Units != 0 ||
		r.Cost.Commands != 1 {
		t.Errorf("one key: %d errors, %d admitted, leak %+v, cost %+v, audit %+v", r.Errors, r.Admitted, r.Leak, r.Cost,
			r.Audit)
	}
}

// follower is a strategy whose decisions need what its set-up wrote to be in a replica.
type follower struct {
	planted
	master, replica redis.UniversalClient
	prefix          string
}

func (f *follower) Provision(ctx context.Context, _ *quota.Policy, grants []strategies.Grant) error {
	pipe := f.master.Pipeline()
	for _, g := range grants {
		pipe.Set(ctx, f.prefix+string(g.Subject), 1, 0)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (f *follower) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if n, err := f.replica.Exists(ctx, f.prefix+string(r.Subject)).Result(); err != nil || n != 1 {
		return quota.Decision{}, errors.Join(fmt.Errorf("%s is not in the replica", r.Subject), err)
	}
	return f.planted.Take(ctx, r)
}

// watched notes how often it was to catch up, and with which store.
type watched struct {
	*redisstore.Store
	with []stores.Store
}

func (w *watched) CatchUp(ctx context.Context, primary stores.Store) error {
	w.with = append(w.with, primary)
	return w.Store.CatchUp(ctx, primary)
}

// TestReplicasCatchUp: what subjects are set up with is in a replica before the first
// request, of the warm-up, of the run and of its probe.
func TestReplicasCatchUp(t *testing.T) {
	f := &follower{}
	sel := f.selection()
	sel.Needs = []strategies.Need{"redis", "redis.replica"}
	sel.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		f.master = strategies.Redis(env)
		f.replica = env.Clients["redis.replica"].(redis.UniversalClient)
		f.prefix = env.Prefix
		return f, nil
	}
	master := storetest.Redis(t)
	set := setOf(t, master)
	replica := &watched{Store: storetest.Further(t, "redis.replica").(*redisstore.Store)}
	if err := set.Add("redis.replica", replica); err != nil {
		t.Fatal(err)
	}
	r := measureOne(t, &f.planted, "hot-key", func(c *Config) {
		c.Strategies = []strategies.Selection{sel}
		c.base = nil
		c.Workers = 4
		c.Stores = set
		c.Requests = 400
	})
	if !r.Audit.Valid || r.Errors != 0 || r.Issued == 0 {
		t.Errorf("%d of %d requests failed, the first: %s; audit %+v", r.Errors, r.Issued, r.FirstError, r.Audit)
	}
	if len(replica.with) < 2 || replica.with[0] != stores.Store(master) {
		t.Errorf("it was to catch up %d times, with %v", len(replica.with), replica.with)
	}
}

// TestFullMemory makes up more subjects than the memory of a server holds. One that was
// told to evict keys forgets what subjects have used, which leaks and is no reason not to
// believe the run; one that was told not to refuses requests, and no subject gets more.
func TestFullMemory(t *testing.T) {
	testenv.Long(t)    // thousands of keys
	storetest.Redis(t) // or skip
	for policy, evicts := range map[string]bool{"allkeys-lru": true, "noeviction": false} {
		store, err := redisstore.Open(t.Context(), "process:maxmemory=2mb,policy="+policy, stores.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := measureReal(t, "incr-expire-atomic", "agent-api", "steady", func(c *Config) {
			c.Stores, c.Policy.Limit, c.Load, c.Workers = setOf(t, store), 1, harness.Closed(), 2
			c.Requests = 12_000
			c.Duration = 0
			c.Stream.Set("subjects", 6_000)
			c.Stream.Set("popularity", "uniform")
			c.Stream.Set("over-quota", 0)
		})["incr-expire-atomic"]
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		text := fmt.Sprint(r.Audit.Reasons)
		switch {
		case !evicts:
			if r.Audit.Valid || r.Degraded == 0 || r.Leak.Units != 0 || !strings.Contains(text, "with the error OOM") {
				t.Errorf("%s: %d decided without the store, leak %+v, audit %s", policy, r.Degraded, r.Leak, text)
			}
		case !r.Audit.Valid || r.Errors > 0 || r.Leak.Units == 0 || !strings.Contains(text, "redis evicted"):
			t.Errorf("%s: %d errors, leak %+v, audit %s", policy, r.Errors, r.Leak, text)
		case !slices.Equal(r.NotPromised, []string{string(quota.FaultEviction)}) || len(r.Guarantee) > 0:
			t.Errorf("%s: it promises %+v, and nothing under %q", policy, r.Guarantee, r.NotPromised)
		}
	}
}
