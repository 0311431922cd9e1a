package zookeeper_test

import (
	"context"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/stores/zookeeper"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
	_ "github.com/quotabench/quotabench/strategies/consensus/zookeeper"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func server(t testing.TB) *zookeeper.Store {
	return storetest.Shared(t, "zookeeper", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(zookeeper.Open)(ctx, "process", stores.Options{})
	}).(*zookeeper.Store)
}

// client is a client of the test's own in a scope of the test's own.
func client(t testing.TB, off *storetest.Switch) (*zk.Conn, stores.Scope) {
	t.Helper()
	s, scope := server(t), storetest.Scope(t)
	c, err := s.Connect(t.Context(), scope, stores.ConnOptions{Pool: 1, Wrap: off.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Wipe(context.Background(), scope); err != nil {
			t.Error(err)
		}
	})
	return c.Client().(*zk.Conn), scope
}

func TestConformance(t *testing.T) {
	server(t)
	meta, err := strategies.Lookup(consensus.ZooKeeperCounter)
	if err != nil {
		t.Fatal(err)
	}
	var off storetest.Switch
	strategytest.Run(t, meta, strategytest.Stores{
		Clients: map[string]func(testing.TB) any{"zookeeper": func(tb testing.TB) any { c, _ := client(tb, &off); return c }},
		Break:   off.Set,
	})
}

func open(t *testing.T, options quota.Options) (strategies.Strategy, *zk.Conn, string) {
	t.Helper()
	meta, err := strategies.Lookup(consensus.ZooKeeperCounter)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := meta.Select(options)
	if err != nil {
		t.Fatal(err)
	}
	c, scope := client(t, new(storetest.Switch))
	s, err := meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: scope.Prefix(), Clients: map[string]any{"zookeeper": c}, Options: sel.Options, Instances: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, scope.Prefix()
}

func policy(kind quota.Kind, limit int64) *quota.Policy {
	return &quota.Policy{Name: "p", Limit: limit, Unit: "requests", Window: quota.Window{Kind: kind}}
}

// TestRetriesAreCounted: callers of one key come in between each other, callers of
// keys of their own do not.
func TestRetriesAreCounted(t *testing.T) {
	s, _, _ := open(t, nil)
	const callers, each = 8, 5
	p := policy(quota.Standing, callers*each)
	run := func(subject func(caller int) quota.Subject) map[string]int64 {
		before := measures(s)
		var wg sync.WaitGroup
		for w := range callers {
			wg.Go(func() {
				for range each {
					if d, err := s.Take(t.Context(), quota.Request{Subject: subject(w), Policy: p, Units: 1}); err != nil || !d.Admitted {
						t.Errorf("%+v, %v", d, err)
					}
				}
			})
		}
		wg.Wait()
		after := measures(s)
		for name := range after {
			after[name] -= before[name]
		}
		return after
	}
	apart := run(func(caller int) quota.Subject { return quota.Subject(rune('a' + caller)) })
	if apart["successes"] != callers*each || apart["retries"] != 0 {
		t.Errorf("on keys of their own: %v, want %d successes without retries", apart, callers*each)
	}
	together := run(func(int) quota.Subject { return "hot" })
	if together["successes"] != callers*each || together["retries"] == 0 {
		t.Errorf("on one key: %v, want %d successes with retries", together, callers*each)
	}
	if d, err := s.Take(t.Context(), quota.Request{Subject: "hot", Policy: p, Units: 1}); err != nil || d.Admitted || d.Remaining != 0 {
		t.Errorf("one more: %+v, %v", d, err)
	}
}

func measures(s strategies.Strategy) map[string]int64 {
	out := map[string]int64{}
	for _, m := range s.(strategies.Meter).Measures() {
		out[m.Name] = m.Value
	}
	return out
}
