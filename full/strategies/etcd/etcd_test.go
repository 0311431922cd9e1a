package etcd_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/internal/served"
	_ "github.com/quotabench/quotabench/full/stores/etcd"
	_ "github.com/quotabench/quotabench/full/strategies/etcd"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) { served.Start(t, codes.EtcdCounter).Run(t) }

func TestRetriesAreCounted(t *testing.T) {
	s, _, _ := served.Start(t, codes.EtcdCounter).Open(t, nil)
	served.CountsRetries(t, s)
}

// TestLeases: keys of a window share one lease that outlives the window; standing
// ones, and all of ttl=none, have none.
func TestLeases(t *testing.T) {
	for _, c := range []struct {
		ttl    string
		kind   quota.Kind
		leased bool
	}{{"lease", quota.CalendarHour, true}, {"lease", quota.Standing, false}, {"none", quota.CalendarHour, false}} {
		s, of, prefix := served.Start(t, codes.EtcdCounter).Open(t, quota.Options{"ttl": c.ttl})
		client := of.(*clientv3.Client)
		p := served.StandingPolicy(5)
		p.Window.Kind = c.kind
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
