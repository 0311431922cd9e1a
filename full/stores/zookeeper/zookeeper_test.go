package zookeeper_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/zookeeper"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
)

func open(t testing.TB) *zookeeper.Store {
	return storetest.Shared(t, "zookeeper", func(ctx context.Context) (stores.Store, error) {
		return stores.Opener(zookeeper.Open)(ctx, "process", stores.Options{})
	}).(*zookeeper.Store)
}

func TestStore(t *testing.T) {
	z := open(t)
	ctx := t.Context()
	scope := storetest.Scope(t)
	if i := z.Info(); i.Kind != stores.KindProcess || i.Version == "" || z.Driver() != "zookeeper" || !z.Owned() ||
		stores.PlaceOf(z) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	var m stores.Meter
	conn, err := z.Connect(ctx, scope, stores.ConnOptions{Pool: 7, Meter: &m})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := conn.Client().(*zk.Conn)
	before := m.Snapshot()
	other := "/not_" + scope.Schema()
	roots := []string{"/" + scope.Schema(), "/" + scope.Schema() + "_b", other}
	const nodes = 3
	for _, root := range roots {
		for i := range nodes {
			path := root
			if i > 0 {
				path += "/" + strconv.Itoa(i)
			}
			if _, err := c.Create(path, []byte("1"), zk.FlagPersistent, zk.AuthACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cost := m.Snapshot().Sub(before)
	want := int64(nodes * len(roots))
	if cost.Commands != want || cost.RoundTrips != want || cost.Unparsed != 0 || cost.Connections != 0 ||
		cost.BytesIn == 0 {
		t.Errorf("%+v, want %d requests in as many round trips over the connection that was open", cost, want)
	}
	if s, err := z.Stats(ctx); err != nil || !s.Known || s.Incarnation == "" {
		t.Errorf("the server says %+v (%v)", s, err)
	}
	if strays, err := z.Prepare(ctx, scope); strays != 4 || err != nil {
		t.Errorf("%d strays (%v), want 4 below two nodes", strays, err)
	}
	if u, err := z.Usage(ctx, scope); err != nil || u != (stores.Usage{Keys: 4, WithoutTTL: 4}) {
		t.Errorf("usage %+v (%v)", u, err)
	}
	if err := z.Wipe(ctx, scope); err != nil {
		t.Fatal(err)
	}
	for i, root := range roots {
		if there, _, err := z.Admin().Exists(root); err != nil || there != (i == 2) {
			t.Errorf("after the wipe, %s exists: %v (%v)", root, there, err)
		}
	}

	// Another user of this machine can reach the server, and not what we keep there.
	stranger, err := zookeeper.Open(ctx, "zk://"+z.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if stranger.Owned() || stranger.Info().Kind != stores.KindURL || stores.PlaceOf(stranger) != stores.OnThisHost {
		t.Errorf("%+v", stranger.Info())
	}
	if _, _, err := stranger.Admin().Get(other); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a stranger reads our nodes (%v)", err)
	}
	storecheck.Hidden(t, z.Password(), z.Info(), z.Arguments())
}

func TestCloseEndsTheServer(t *testing.T) {
	open(t) // skips if there is none
	keepcheck.CloseEnds(t, func(o stores.Options) (keepcheck.Process, error) {
		return zookeeper.Open(t.Context(), "process", o)
	})
}

func TestWrongSpecs(t *testing.T) {
	storecheck.Refused(t, zookeeper.Open,
		map[string]string{"": "--store zookeeper= is empty", "embedded": "is none of",
			"process:members=2": "process:members=3"})
}

// TestUnreachable waits until the client gives up.
func TestUnreachable(t *testing.T) {
	testenv.Long(t)
	storecheck.Refused(t, zookeeper.Open, map[string]string{"zk://127.0.0.1:1": "no zookeeper reached at 127.0.0.1:1"})
}

// TestMembers ends the first server of an ensemble: the others have what was written, and
// take more.
func TestMembers(t *testing.T) {
	testenv.Long(t)
	open(t) // skips if there is none
	z, err := zookeeper.Open(t.Context(), "process:members=3", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	})
	if i := z.Info(); strings.Count(i.Addr, ",") != 2 || i.Version == "" || stores.PlaceOf(z) != stores.StartedHere {
		t.Errorf("%+v", i)
	}
	if pids, err := z.Processes(t.Context()); err != nil || len(pids) < 3 {
		t.Errorf("processes %v (%v)", pids, err)
	}
	create := func(path string) error {
		_, err := z.Admin().Create(path, nil, zk.FlagPersistent, zk.AuthACL(zk.PermAll))
		return err
	}
	if err := create("/before"); err != nil {
		t.Fatal(err)
	}
	first, err := os.FindProcess(z.PID())
	if err == nil {
		err = first.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	storecheck.Eventually(t, "the others take a write", func() bool {
		err := create("/after")
		return err == nil || errors.Is(err, zk.ErrNodeExists)
	})
	if there, _, err := z.Admin().Exists("/before"); err != nil || !there {
		t.Errorf("what was written is there: %v (%v)", there, err)
	}
}
