package etcd_test

import (
	"context"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/etcd"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
	_ "github.com/quotabench/quotabench/strategies/consensus/etcd"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func server(t testing.TB) *etcd.Store {
	return storetest.Shared(t, "etcd", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(etcd.Open)(ctx, "process", stores.Options{})
	}).(*etcd.Store)
}

// client is a client of the test's own in a scope of the test's own.
func client(t testing.TB, off *storetest.Switch) (*clientv3.Client, stores.Scope) {
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
	return c.Client().(*clientv3.Client), scope
}

func TestConformance(t *testing.T) {
	server(t)
	meta, err := strategies.Lookup(consensus.EtcdCounter)
	if err != nil {
		t.Fatal(err)
	}
	var off storetest.Switch
	strategytest.Run(t, meta, strategytest.Stores{
		Clients: map[string]func(testing.TB) any{"etcd": func(tb testing.TB) any { c, _ := client(tb, &off); return c }},
		Break:   off.Set,
	})
}

func open(t *testing.T, options quota.Options) (strategies.Strategy, *clientv3.Client, string) {
	t.Helper()
	meta, err := strategies.Lookup(consensus.EtcdCounter)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := meta.Select(options)
	if err != nil {
		t.Fatal(err)
	}
	c, scope := client(t, new(storetest.Switch))
	s, err := meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: scope.Prefix(), Clients: map[string]any{"etcd": c}, Options: sel.Options, Instances: 1,
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

// TestLeases: keys of a window share one lease that outlives the window; standing
// ones, and all of ttl=none, have none.
func TestLeases(t *testing.T) {
	for _, c := range []struct {
		ttl    string
		kind   quota.Kind
		leased bool
	}{{"lease", quota.CalendarHour, true}, {"lease", quota.Standing, false}, {"none", quota.CalendarHour, false}} {
		s, client, prefix := open(t, quota.Options{"ttl": c.ttl})
		p := policy(c.kind, 5)
		for _, subject := range []quota.Subject{"a", "b", "a"} {
			if d, err := s.Take(t.Context(), quota.Request{Subject: subject, Policy: p, Units: 1}); err != nil || !d.Admitted {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		r, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
		if err != nil || len(r.Kvs) != 2 {
			t.Fatalf("%s, %s: %d keys (%v), want 2", c.ttl, c.kind, len(r.Kvs), err)
		}
		if r.Kvs[0].Lease != r.Kvs[1].Lease || (r.Kvs[0].Lease != 0) != c.leased {
			t.Errorf("%s, %s: leases %d and %d", c.ttl, c.kind, r.Kvs[0].Lease, r.Kvs[1].Lease)
		}
		if !c.leased {
			continue
		}
		id := clientv3.LeaseID(r.Kvs[0].Lease)
		l, err := client.TimeToLive(t.Context(), id)
		if span := p.Window.At(clock.Wall{}.Now()); err != nil || l.TTL < int64(span.End.Sub(clock.Wall{}.Now()).Seconds()) {
			t.Errorf("the lease lasts %d s (%v) and its window until %s", l.TTL, err, span.End)
		}
		// A lease that went too early takes its keys with it, and is replaced.
		if _, err := client.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: p, Units: 1}); err != nil || !d.Admitted {
			t.Errorf("after the lease was gone: %+v, %v", d, err)
		}
	}
}
