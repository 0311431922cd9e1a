package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestSlotMoves counts in keys of one slot before, while and after it moves to another master, twice: no count is lost,
// and who does not follow is told where the keys are.
func TestSlotMoves(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:cluster=3")
	if err := s.CanBreak(t.Context(), "slot-moved"); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	scope := storetest.Scope(t)
	follows := clientOf(t, s, stores.ConnOptions{Redirected: true})
	const keys = 50
	key := func(i int) string { return fmt.Sprintf("%s{planted}%d", scope.Prefix(), i) }
	want := int64(0)
	count := func() {
		t.Helper()
		want++
		for i := range keys {
			if n, err := follows.Incr(ctx, key(i)).Result(); n != want || err != nil {
				t.Fatalf("%s is %d, want %d (%v)", key(i), n, want, err)
			}
		}
	}
	count()
	if err := follows.Expire(ctx, key(0), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		early := clientOf(t, s, stores.ConnOptions{})
		late := clientOf(t, s, stores.ConnOptions{}) // which know where the slot is
		mend, err := s.Break(ctx, "slot-moved", scope)
		if err != nil {
			t.Fatal(err)
		}
		if err := early.Get(ctx, key(0)).Err(); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
			t.Errorf("who does not follow gets %v", err)
		}
		count()
		if err := mend(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := clientOf(t, s, stores.ConnOptions{}).Get(ctx, key(keys-1)).Int64(); n != want || err != nil {
			t.Errorf("%d at its new place, want %d (%v)", n, want, err)
		}
		if err := late.Get(ctx, key(0)).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			t.Errorf("who does not follow gets %v", err)
		}
		count()
	}
	if left := follows.TTL(ctx, key(0)).Val(); left <= 0 || left > time.Hour {
		t.Errorf("a key that moved lives for %v", left)
	}
	if n, err := s.WipePrefix(ctx, scope.Prefix()); n != keys || err != nil {
		t.Errorf("%d keys are removed, want %d (%v)", n, keys, err)
	}
}

// detached ends the replication of all three masters of a cluster, so that what they are told from then on goes with
// them.
func detached(ctx context.Context, c *goredis.ClusterClient) error {
	for { // until the client knows all replicas
		var n atomic.Int64
		err := c.ForEachSlave(ctx, func(ctx context.Context, r *goredis.Client) error {
			n.Add(1)
			return errors.Join(r.ConfigSet(ctx, "masterauth", "wrong").Err(),
				r.Do(ctx, "CLIENT", "KILL", "TYPE", "master").Err())
		})
		if err != nil || n.Load() == 3 {
			return err
		}
		c.ReloadState(ctx)
		if err := (clock.Wall{}).Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// TestNodeKilled plants keys that a replica has, and such that it has not got, and kills their master, twice: its
// replica has the first ones, and it follows that one when it is back.
func TestNodeKilled(t *testing.T) {
	testenv.Long(t)
	if err := started(t, "process:cluster=3").CanBreak(t.Context(), "node-killed"); err == nil ||
		!strings.Contains(err.Error(), "cluster=3,replicas=1") {
		t.Errorf("a cluster without replicas: %v", err)
	}
	s := started(t, "process:cluster=3,replicas=1")
	ctx := t.Context()
	scope := storetest.Scope(t)
	const keys = 60 // on all masters
	for round := range 2 {
		if err := s.CanBreak(ctx, "node-killed"); err != nil {
			t.Fatal(err)
		}
		before, err := s.Processes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		fresh := clientOf(t, s, stores.ConnOptions{}).(*goredis.ClusterClient)
		set := func(what string) {
			for i := range keys {
				if err := fresh.Set(ctx, fmt.Sprintf("%s%s%d-%d", scope.Prefix(), what, round, i), 1, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		set("kept")
		attached(t, fresh)
		if err := detached(ctx, fresh); err != nil {
			t.Fatal(err)
		}
		set("lost")
		mend, err := s.Break(ctx, "node-killed", scope)
		if err != nil {
			t.Fatal(err)
		}
		if err := mend(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := s.Processes(ctx)
		if err != nil || len(after) != 6 || slices.Equal(before, after) {
			t.Errorf("processes %v after %v (%v)", after, before, err)
		}
		now := clientOf(t, s, stores.ConnOptions{}).(*goredis.ClusterClient)
		have := func(what string) (n int) {
			for i := range keys {
				n += int(now.Exists(ctx, fmt.Sprintf("%s%s%d-%d", scope.Prefix(), what, round, i)).Val())
			}
			return n
		}
		if kept, lost := have("kept"), keys-have("lost"); kept != keys || lost == 0 || lost == keys {
			t.Errorf("round %d: %d of %d keys that the replica had are there, and %d of %d that it had not are lost", round,
				kept, keys, lost, keys)
		}
		attached(t, now)
	}
}

// TestNodeWithKeysIsKilled: the master that is killed is the one that has the run's only key, on each of three.
func TestNodeWithKeysIsKilled(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:cluster=3,replicas=1")
	ctx := t.Context()
	scope := storetest.Scope(t)
	c := clientOf(t, s, stores.ConnOptions{}).(*goredis.ClusterClient)
	for i := range 60 { // those of others, on all masters
		if err := c.Set(ctx, fmt.Sprintf("other%d", i), 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, seen := 0, map[string]bool{}; len(seen) < 3; i++ {
		key := fmt.Sprintf("%s%d", scope.Prefix(), i)
		master, err := c.MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		at := master.Options().Addr
		if seen[at] {
			continue
		}
		seen[at] = true
		if err := c.Set(ctx, key, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		attached(t, c)
		mend, err := s.Break(ctx, "node-killed", scope)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", at); err == nil {
			t.Errorf("the master of %s is not killed", key)
			_ = conn.Close()
		}
		if err := mend(ctx); err != nil {
			t.Fatal(err)
		}
		c = clientOf(t, s, stores.ConnOptions{}).(*goredis.ClusterClient)
		if err := c.Del(ctx, key).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// attached undoes what detached does, and waits until each of three masters has a replica with all that it was told so
// far.
func attached(t *testing.T, c *goredis.ClusterClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	replication := func(ctx context.Context, c *goredis.Client) (f map[string]string, err error) {
		all, err := c.InfoMap(ctx, "replication").Result()
		return all["Replication"], err
	}
	goals := sync.Map{} // by the masters' ports
	err := c.ForEachMaster(ctx, func(ctx context.Context, m *goredis.Client) error {
		f, err := replication(ctx, m)
		_, port, _ := net.SplitHostPort(m.Options().Addr)
		goals.Store(port, f["master_repl_offset"])
		return err
	})
	for {
		var n atomic.Int64
		err = errors.Join(err, c.ForEachSlave(ctx, func(ctx context.Context, r *goredis.Client) error {
			if err := r.ConfigSet(ctx, "masterauth", c.Options().Password).Err(); err != nil {
				return err
			}
			f, err := replication(ctx, r)
			goal, _ := goals.Load(f["master_port"])
			text, _ := goal.(string)
			want, _ := strconv.ParseInt(text, 10, 64)
			if at, _ := strconv.ParseInt(f["slave_repl_offset"], 10, 64); f["master_link_status"] == "up" && want > 0 &&
				at >= want {
				n.Add(1)
			}
			return err
		}))
		if err == nil && n.Load() == 3 {
			return
		}
		if err != nil || (clock.Wall{}).Sleep(ctx, 50*time.Millisecond) != nil {
			t.Fatalf("%d of 3 replicas have all (%v)", n.Load(), err)
		}
	}
}

// TestRestarted: a server that was killed comes back with what it had, on the same port.
func TestRestarted(t *testing.T) {
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), "process:durable", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	allowed, ok := cores.Allowed()
	if ok {
		if err := s.Confine(t.Context(), allowed[:1]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Admin().Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
		before := s.PID()
		mend, err := s.Break(t.Context(), "restarted", "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Admin().Ping(t.Context()).Err(); err == nil {
			t.Error("it answers while it is gone")
		}
		if err := mend(t.Context()); err != nil || s.PID() == before {
			t.Fatalf("%v, process %d after %d", err, s.PID(), before)
		}
	}
	if set, _ := cores.AllowedTo(s.PID()); ok && len(set) != 1 {
		t.Errorf("it runs on the cores %v", set)
	}
	if n, err := s.Admin().Get(t.Context(), "n").Int(); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
