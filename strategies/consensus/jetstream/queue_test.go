package jetstream_test

import (
	"context"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/nats"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
	_ "github.com/quotabench/quotabench/strategies/consensus/jetstream"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func server(t testing.TB) *nats.Store {
	return storetest.Shared(t, "nats", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(nats.Open)(ctx, "process", stores.Options{})
	}).(*nats.Store)
}

// client is a client of the test's own in a scope of the test's own.
func client(t testing.TB, off *storetest.Switch) (*natsgo.Conn, stores.Scope) {
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
	return c.Client().(*natsgo.Conn), scope
}

func TestConformance(t *testing.T) {
	server(t)
	meta, err := strategies.Lookup(consensus.Queue)
	if err != nil {
		t.Fatal(err)
	}
	var off storetest.Switch
	strategytest.Run(t, meta, strategytest.Stores{
		Clients: map[string]func(testing.TB) any{"nats": func(tb testing.TB) any { c, _ := client(tb, &off); return c }},
		Break:   off.Set,
	})
}

func open(t *testing.T, options quota.Options) (strategies.Strategy, *natsgo.Conn, string) {
	t.Helper()
	meta, err := strategies.Lookup(consensus.Queue)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := meta.Select(options)
	if err != nil {
		t.Fatal(err)
	}
	c, scope := client(t, new(storetest.Switch))
	s, err := meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: scope.Prefix(), Clients: map[string]any{"nats": c}, Options: sel.Options, Instances: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, scope.Prefix()
}

func policy(kind quota.Kind, limit int64) *quota.Policy {
	return &quota.Policy{Name: "p", Limit: limit, Unit: "requests", Window: quota.Window{Kind: kind}}
}

func measures(s strategies.Strategy) map[string]int64 {
	out := map[string]int64{}
	for _, m := range s.(strategies.Meter).Measures() {
		out[m.Name] = m.Value
	}
	return out
}

func request(id uint64, p *quota.Policy) quota.Request {
	return quota.Request{ID: id, Subject: "s", Policy: p, Units: 1}
}

// TestLag: every decision was in the stream for some time.
func TestLag(t *testing.T) {
	s, _, _ := open(t, nil)
	defer func() { _ = s.Close(t.Context()) }()
	p := policy(quota.Standing, 2)
	for i := range uint64(4) {
		if d, err := s.Take(t.Context(), request(i, p)); err != nil || d.Admitted != (i < 2) || d.Tier != "queue" {
			t.Errorf("request %d: %+v, %v", i, d, err)
		}
	}
	if m := measures(s); m["messages decided"] != 4 || m["queue lag, most"] <= 0 || m["queue lag, sum"] < m["queue lag, most"] || m["gone ahead"] != 0 {
		t.Errorf("%v, want 4 messages with a lag", m)
	}
}

// TestMeanwhile: callers that go ahead are admitted over the limit, until the
// instance has heard that nothing is left.
func TestMeanwhile(t *testing.T) {
	s, _, _ := open(t, quota.Options{"meanwhile": "admit"})
	defer func() { _ = s.Close(t.Context()) }()
	p := policy(quota.Standing, 1)
	var admitted int64
	for id := uint64(1); ; id++ {
		d, err := s.Take(t.Context(), request(id, p))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Admitted {
			if d.Tier != "queue" {
				t.Errorf("%+v is rejected by an instance that does not know", d)
			}
			break
		}
		if admitted++; admitted > 10_000 {
			t.Fatal("never rejected")
		}
	}
	m := measures(s)
	if m["gone ahead"] != admitted || m["turned down afterwards"] != admitted-1 {
		t.Errorf("%v, want %d gone ahead and all but the first turned down", m, admitted)
	}
	r, err := s.(strategies.Viewer).Used(t.Context(), "s", p)
	if err != nil || len(r) != 1 || r[0].Units != 1 || !r[0].Known {
		t.Errorf("the consumer has counted %+v (%v), want the limit of 1", r, err)
	}
	if err := s.(strategies.Refunder).Refund(t.Context(), quota.Reservation{Request: request(1, p)}); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Take(t.Context(), request(0, p)); err != nil || !d.Admitted || d.Tier != "queue" {
		t.Errorf("after a refund: %+v, %v; want the consumer's word", d, err)
	}
	if d, err := s.Take(t.Context(), request(0, p)); err != nil || !d.Admitted || d.Tier != "meanwhile" {
		t.Errorf("after the consumer has admitted one: %+v, %v; want to go ahead again", d, err)
	}
}

// TestConsumerReadsItsCountersFromTheStream: a consumer that was lost is replaced by
// one that knows as much.
func TestConsumerReadsItsCountersFromTheStream(t *testing.T) {
	s, c, prefix := open(t, nil)
	p := policy(quota.Standing, 3)
	for id := range uint64(2) {
		if _, err := s.Take(t.Context(), request(id, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	meta, err := strategies.Lookup(consensus.Queue)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := meta.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	next, err := meta.Open(t.Context(), strategies.Env{
		Clock: clock.Wall{}, Prefix: prefix, Clients: map[string]any{"nats": c}, Options: sel.Options, Instances: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close(t.Context()) }()
	for id, want := range []bool{true, false} {
		if d, err := next.Take(t.Context(), request(uint64(2+id), p)); err != nil || d.Admitted != want {
			t.Errorf("request %d: %+v, %v; want admitted %v", 2+id, d, err, want)
		}
	}
}
