package redis_test

import (
	"context"
	"net"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestFromClient wraps a client with a password, a database and a dialer of its
// own, which the store's clients must have, too.
func TestFromClient(t *testing.T) {
	server := storetest.Redis(t)
	opt := *server.Client(redis.ClientOptions{}).Options()
	dialled := make(chan string, 100)
	opt.DB = 5
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled <- addr
		return (&net.Dialer{}).DialContext(ctx, network, server.Info().Addr)
	}
	opt.Addr = "nowhere.invalid:1"
	theirs := goredis.NewClient(&opt)
	defer func() { _ = theirs.Close() }()
	s, err := redis.FromClient(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Kind != stores.KindClient || i.Version != server.Info().Version || s.Owned() ||
		s.Driver() != "redis" {
		t.Errorf("%+v, owned %v", i, s.Owned())
	}
	if st, err := s.Stats(t.Context()); err != nil || !st.Known {
		t.Errorf("stats %+v, %v", st, err)
	}
	scope := storetest.Scope(t)
	before := len(dialled)
	var m stores.Meter
	c := connect(t, s, scope, stores.ConnOptions{Pool: 3, Meter: &m})
	if n := len(dialled) - before; n != 3 || m.Connections.Load() != 3 {
		t.Errorf("%d connections by the client's dialer, %d metered, want 3", n, m.Connections.Load())
	}
	sent := m.Snapshot()
	if err := c.Client().(goredis.UniversalClient).Set(t.Context(), scope.Prefix()+"k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := m.Snapshot().Sub(sent).Commands; n != 1 {
		t.Errorf("%d commands metered, want 1", n)
	}
	if n, err := theirs.Exists(t.Context(), scope.Prefix()+"k").Result(); err != nil || n != 1 {
		t.Errorf("the key is not in the client's database (%v)", err)
	}
	if err := s.Wipe(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if n, err := theirs.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys are left (%v)", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Ping(t.Context()).Err(); err != nil {
		t.Errorf("closing the store closed the caller's client: %v", err)
	}
}

// TestFromClusterClient wraps a client of a cluster, of one server that has all
// slots.
func TestFromClusterClient(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t) // or skip
	ctx := t.Context()
	server, err := redis.Open(ctx, "process", stores.Options{Settings: map[string]string{"cluster-enabled": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	if err := server.Admin().ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	opt := server.Admin().Options()
	theirs := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{opt.Addr}, Password: opt.Password})
	defer func() { _ = theirs.Close() }()
	scope := storetest.Scope(t)
	storecheck.Eventually(t, "the cluster serves", func() bool { return theirs.Set(ctx, "other", 1, 0).Err() == nil })
	s, err := redis.FromClient(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, scope, stores.ConnOptions{Pool: 1})
	for _, k := range []string{"a", "b", "c", "d"} { // in several slots
		if err := c.Client().(goredis.UniversalClient).Set(ctx, scope.Prefix()+k, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := s.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: 4, WithoutTTL: 4, Bytes: u.Bytes}) ||
		u.Bytes == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := s.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Admin().DBSize(ctx).Result(); err != nil || n != 1 {
		t.Errorf("%d keys are left (%v), want the one outside the scope", n, err)
	}
	if _, err := s.Connect(ctx, scope, stores.ConnOptions{Pool: 1, Meter: new(stores.Meter)}); err == nil ||
		!strings.Contains(err.Error(), "cannot be metered") {
		t.Errorf("metering it: %v", err)
	}
}
