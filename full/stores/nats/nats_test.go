package nats_test

import (
	"context"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/nats"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func open(t testing.TB) *nats.Store {
	return storetest.Shared(t, "nats", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(nats.Open)(ctx, "process", stores.Options{})
	}).(*nats.Store)
}

func TestStore(t *testing.T) {
	n := open(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	if i := n.Info(); i.Kind != stores.KindProcess || i.Version == "" || n.Driver() != "nats" || !n.Owned() ||
		stores.PlaceOf(n) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	var m stores.Meter
	conn, err := n.Connect(ctx, scope, stores.ConnOptions{Pool: 7, Meter: &m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	js, err := jetstream.New(conn.Client().(*natsgo.Conn))
	if err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{scope.Schema(): 0, scope.Schema() + "_b": time.Hour, "not_" +
		scope.Schema(): 0} {
		if _, err := js.CreateStream(ctx,
			jetstream.StreamConfig{Name: name, Subjects: []string{name}, MaxAge: age}); err != nil {
			t.Fatal(err)
		}
		before := m.Snapshot()
		for range 3 {
			if _, err := js.Publish(ctx, name, []byte("message")); err != nil {
				t.Fatal(err)
			}
		}
		cost := m.Snapshot().Sub(before)
		if cost.Commands != 3 || cost.RoundTrips != 3 || cost.Unparsed != 0 || cost.Connections != 0 || cost.BytesIn == 0 {
			t.Errorf("%+v, want 3 messages in 3 round trips over the connection that was open", cost)
		}
	}
	if s, err := n.Stats(ctx); err != nil || !s.Known || s.Incarnation == "" {
		t.Errorf("the server says %+v (%v)", s, err)
	}
	if strays, err := n.Prepare(ctx, scope); strays != 6 || err != nil {
		t.Errorf("%d strays (%v), want 6", strays, err)
	}
	if u, err := n.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: 6, WithoutTTL: 3}) {
		t.Errorf("usage %+v (%v)", u, err)
	}
	if err := n.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if u, err := n.Usage(ctx, scope); err != nil || u.Keys != 0 {
		t.Errorf("usage %+v (%v) after all was removed", u, err)
	}
	if _, err := n.JetStream().Stream(ctx, "not_"+scope.Schema()); err != nil {
		t.Errorf("what is outside the scope is gone: %v", err)
	}
}

// TestOwnServersAskForAPassword tries to get in as another user of this machine
// would.
func TestOwnServersAskForAPassword(t *testing.T) {
	n := open(t)
	other, err := nats.Open(t.Context(), "nats://"+n.Info().Addr, stores.Options{})
	if err == nil {
		_ = other.Close()
		t.Fatal("opened without a password")
	}
	storecheck.Error(t, err, "refuses the login", "NATS_PASSWORD")
	storecheck.Hidden(t, n.Password(), n.Info(), n.Arguments())

	t.Setenv("NATS_PASSWORD", n.Password())
	other, err = nats.Open(t.Context(), "nats://quotabench@"+n.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if other.Owned() || other.Info().Kind != stores.KindURL || stores.PlaceOf(other) != stores.OnThisHost {
		t.Errorf("%+v", other.Info())
	}
}

func TestCloseEndsTheServer(t *testing.T) {
	open(t) // skips if there is none
	keepcheck.CloseEnds(t, func(o stores.Options) (keepcheck.Process, error) {
		return nats.Open(t.Context(), "process", o)
	})
}

func TestWrongSpecs(t *testing.T) {
	storecheck.Refused(t, nats.Open,
		map[string]string{"": "--store nats= is empty", "embedded": "is none of",
			"nats://127.0.0.1:1": "no nats reached at 127.0.0.1:1"})
}
