package etcd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/etcd"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func open(t testing.TB) *etcd.Store {
	return storetest.Shared(t, "etcd", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(etcd.Open)(ctx, "process", stores.Options{})
	}).(*etcd.Store)
}

func TestStore(t *testing.T) {
	e := open(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	if i := e.Info(); i.Kind != stores.KindProcess || i.Version == "" || e.Driver() != "etcd" || !e.Owned() ||
		stores.PlaceOf(e) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	var m stores.Meter
	conn, err := e.Connect(ctx, scope, stores.ConnOptions{Pool: 7, Meter: &m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := conn.Client().(*clientv3.Client)
	before := m.Snapshot()
	known := stats(t, e)
	lease, err := c.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for key, options := range map[string][]clientv3.OpOption{
		scope.Prefix() + "a": nil, scope.Prefix() + "b": {clientv3.WithLease(lease.ID)}, "not" + scope.Prefix(): nil,
	} {
		if _, err := c.Put(ctx, key, "1", options...); err != nil {
			t.Fatal(err)
		}
	}
	cost := m.Snapshot().Sub(before)
	if cost.Commands != 4 || cost.RoundTrips != 4 || cost.Unparsed != 0 || cost.Connections != 0 || cost.BytesIn == 0 {
		t.Errorf("%+v, want 4 calls in 4 round trips over the connection that was open", cost)
	}
	if now := stats(t, e); now.Commands-known.Commands < 4 || now.Incarnation != known.Incarnation || now.Memory == 0 {
		t.Errorf("the server says %+v after %+v", now, known)
	}
	if strays, err := e.Prepare(ctx, scope); strays != 2 || err != nil {
		t.Errorf("%d strays (%v), want 2", strays, err)
	}
	if u, err := e.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: 2, WithoutTTL: 1}) {
		t.Errorf("usage %+v (%v)", u, err)
	}
	if err := e.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Admin().Get(ctx, "not"+scope.Prefix()); err != nil || r.Count != 1 {
		t.Errorf("what is outside the scope is gone (%v)", err)
	}
	if u, err := e.Usage(ctx, scope); err != nil || u.Keys != 0 {
		t.Errorf("usage %+v (%v) after all was removed", u, err)
	}
}

func stats(t *testing.T, e *etcd.Store) stores.Stats {
	t.Helper()
	s, err := e.Stats(t.Context())
	if err != nil || !s.Known {
		t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// mute is a connection that cannot be written to once it is off, and stays open.
type mute struct {
	net.Conn
	off *atomic.Bool
}

func (m mute) Write(b []byte) (int, error) {
	if m.off.Load() {
		return 0, errors.New("muted by the test")
	}
	return m.Conn.Write(b)
}

// TestCallsEndWithTheConnection: a call over a connection that fails must not wait
// for an answer.
func TestCallsEndWithTheConnection(t *testing.T) {
	var off atomic.Bool
	conn, err := open(t).Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{
		Pool: 1, Wrap: func(c net.Conn) net.Conn { return mute{c, &off} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	off.Store(true)
	if _, err := conn.Client().(*clientv3.Client).Get(ctx, "k"); err == nil || ctx.Err() != nil {
		t.Errorf("%v (%v), want the connection's error", err, ctx.Err())
	}
}

// TestOwnServersAskForAPassword tries to get in as another user of this machine
// would.
func TestOwnServersAskForAPassword(t *testing.T) {
	e := open(t)
	other, err := etcd.Open(t.Context(), "http://"+e.Info().Addr, stores.Options{})
	if err == nil {
		_ = other.Close()
		t.Fatal("opened without a password")
	}
	storecheck.Error(t, err, "refuses the login", "ETCDCTL_PASSWORD")
	storecheck.Hidden(t, e.Password(), e.Info(), e.Arguments())

	t.Setenv("ETCDCTL_PASSWORD", e.Password())
	other, err = etcd.Open(t.Context(), "http://root@"+e.Info().Addr, stores.Options{})
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
		return etcd.Open(t.Context(), "process", o)
	})
}

func TestWrongSpecs(t *testing.T) {
	storecheck.Refused(t, etcd.Open,
		map[string]string{"": "--store etcd= is empty", "embedded": "is none of", "process:members=2": "process:members=3",
			"http://127.0.0.1:1": "no etcd reached at 127.0.0.1:1"})
}

// TestMembers ends the first member of a cluster: the others have what was written, and
// take more.
func TestMembers(t *testing.T) {
	testenv.Long(t)
	open(t) // skips if there is none
	e, err := etcd.Open(t.Context(), "process:members=3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	if i := e.Info(); strings.Count(i.Addr, ",") != 2 || i.Version == "" || stores.PlaceOf(e) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	if pids, err := e.Processes(ctx); err != nil || len(pids) != 3 {
		t.Errorf("processes %v (%v)", pids, err)
	}
	if s := stats(t, e); strings.Count(s.Incarnation, ",") != 2 {
		t.Errorf("%+v, want the figures of three", s)
	}
	if _, err := e.Admin().Put(ctx, "k", "1"); err != nil {
		t.Fatal(err)
	}
	first, err := os.FindProcess(e.PID())
	if err == nil {
		err = first.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	storecheck.Eventually(t, "the others take a write", func() bool {
		_, err := e.Admin().Put(ctx, "k2", "1")
		return err == nil
	})
	storecheck.Eventually(t, "the others have what was written", func() bool { // the client may still try the first
		r, err := e.Admin().Get(ctx, "k")
		return err == nil && r.Count == 1
	})
	if s := stats(t, e); strings.Count(s.Incarnation, ",") != 1 {
		t.Errorf("%+v, want the figures of two", s)
	}
}
