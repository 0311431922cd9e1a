package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

const holdings = "quotabench:holdings"

// theirs is a store on a server that outlives this process, as one of a user's does,
// and a client of it.
func theirs(t *testing.T) (*redis.Store, *goredis.Client) {
	t.Helper()
	just := server.JustStarted
	server.JustStarted = 0
	t.Cleanup(func() { server.JustStarted = just })
	c := storetest.Redis(t).Client(redis.ClientOptions{})
	s, err := redis.FromClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

// dead is a process of this machine that has ended, and elsewhere one of another.
func dead() server.Owner {
	o := server.Us()
	o.Run = "dead"
	o.Process = "0" + o.Process
	return o
}

func elsewhere() server.Owner {
	o := server.Us()
	o.Run = "elsewhere"
	o.Machine = "another boot"
	o.Host = "far"
	return o
}

func set(t *testing.T, c *goredis.Client, key, value string) {
	t.Helper()
	if err := c.Set(context.Background(), key, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Del(context.Background(), key) })
}

func enter(t *testing.T, c *goredis.Client, scope string, o server.Owner) {
	t.Helper()
	if err := c.HSet(context.Background(), holdings, scope, o.Encode()).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.HDel(context.Background(), holdings, scope) })
}

// TestOnlyTheDeadAreRemoved plants what processes keep that live, that died, that are
// elsewhere, and that are unknown.
func TestOnlyTheDeadAreRemoved(t *testing.T) {
	s, c := theirs(t)
	ctx := t.Context()
	if _, err := s.Prepare(ctx, "mine_1"); err != nil {
		t.Fatal(err)
	}
	enter(t, c, "dead_1", dead())
	enter(t, c, "near_1", elsewhere())
	far := elsewhere()
	far.Run = "lapsed"
	enter(t, c, "far_1", far)
	set(t, c, "quotabench:lease-elsewhere", "")
	set(t, c, "quotabench:lease-dead", "") // which still runs
	stay := []string{"quotabench:mine_1:k", "quotabench:near_1:k", "quotabench:old_1:k", "quotabench:dead_10:k", "other"}
	for _, k := range append([]string{"quotabench:dead_1:a", "quotabench:dead_1:b", "quotabench:far_1:k"}, stay...) {
		set(t, c, k, "1")
	}

	found, err := s.Holdings(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range found {
		got = append(got, string(h.Scope)+" "+string(h.State))
	}
	want := []string{"dead_1 left", "far_1 left", "mine_1 in use", "near_1 in use", "dead_10 unknown", "old_1 unknown"}
	if !slices.Equal(got, want) {
		t.Errorf("holdings %q, want %q", got, want)
	}
	if found[0].Keys != 2 || !strings.Contains(found[0].Owner, "process ") {
		t.Errorf("%+v", found[0])
	}

	did, err := stores.RemoveDead(ctx, s)
	if err != nil || !strings.HasPrefix(did, "removed 3 keys that 2 runs left") {
		t.Errorf("%q, %v", did, err)
	}
	if n, err := c.Exists(ctx, stay...).Result(); err != nil || n != int64(len(stay)) {
		t.Errorf("%d of %d keys that are not to be removed are left, %v", n, len(stay), err)
	}
	if n, err := c.Exists(ctx, "quotabench:dead_1:a", "quotabench:dead_1:b", "quotabench:far_1:k",
		"quotabench:lease-dead").Result(); err != nil || n != 0 {
		t.Errorf("%d keys of the dead are left, %v", n, err)
	}
	if did, err := stores.RemoveDead(ctx, s); did != "" || err != nil {
		t.Errorf("a second time: %q, %v", did, err)
	}
	if err := s.Wipe(ctx, "mine_1"); err != nil {
		t.Fatal(err)
	}
	if left, err := c.HKeys(ctx, holdings).Result(); err != nil || !slices.Equal(left, []string{"near_1"}) {
		t.Errorf("leases %q are left, %v", left, err)
	}
	if n := c.Exists(ctx, "quotabench:lease-"+server.Us().Run).Val(); n != 0 {
		t.Error("our own lease is left")
	}
}

// TestAScopeHasOneOwner: a scope whose name is not random is refused while another
// process uses it, and taken over once that has died.
func TestAScopeHasOneOwner(t *testing.T) {
	s, c := theirs(t)
	ctx := t.Context()
	enter(t, c, "sim", elsewhere())
	set(t, c, "quotabench:lease-elsewhere", "")
	set(t, c, "quotabench:lease-dead", "") // which still runs
	set(t, c, "quotabench:sim:k", "1")
	if _, err := s.Prepare(ctx, "sim"); err == nil || !strings.Contains(err.Error(), "in use by another run (process ") {
		t.Errorf("Prepare: %v", err)
	}
	if err := s.Close(); err != nil { // nothing of it is owed
		t.Error(err)
	}
	if n := c.Exists(ctx, "quotabench:sim:k").Val(); n != 1 {
		t.Error("a living run's key was removed")
	}
	s, _ = theirs(t)
	c.Del(ctx, "quotabench:lease-elsewhere")
	if strays, err := s.Prepare(ctx, "sim"); strays != 0 || err != nil {
		t.Errorf("%d strays, %v", strays, err)
	}
	if err := s.Wipe(ctx, "sim"); err != nil {
		t.Error(err)
	}
}

var errRefused = errors.New("refused by the test")

// refusing fails commands of one name while it is on.
type refusing struct {
	name string
	on   atomic.Bool
}

func (r *refusing) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r *refusing) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if r.on.Load() && cmd.Name() == r.name {
			return errRefused
		}
		return next(ctx, cmd)
	}
}

func (r *refusing) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if r.on.Load() && cmds[0].Name() == r.name {
			return errRefused
		}
		return next(ctx, cmds)
	}
}

// TestNoLeaseWithoutEntry: whichever command a process is killed before when it gives up its last scope, no lease is
// left that no entry leads to.
func TestNoLeaseWithoutEntry(t *testing.T) {
	for _, before := range []string{"del", "hdel"} {
		s, c := theirs(t)
		ctx := t.Context()
		hook := &refusing{name: before}
		c.AddHook(hook)
		if _, err := s.Prepare(ctx, "given_1"); err != nil {
			t.Fatal(err)
		}
		hook.on.Store(true)
		if err := s.Wipe(ctx, "given_1"); err == nil {
			t.Fatalf("Wipe has not failed at %s", before)
		}
		hook.on.Store(false)
		if leases := c.Keys(ctx, "quotabench:lease-*").Val(); len(leases) > 0 && !c.HExists(ctx, holdings, "given_1").Val() {
			t.Errorf("killed before %s: %q are left, and no entry", before, leases)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatCannotBeRemovedIsTriedAgain by the next Prepare, and by Close.
func TestWhatCannotBeRemovedIsTriedAgain(t *testing.T) {
	for _, later := range []string{"Prepare", "Close"} {
		t.Run(later, func(t *testing.T) {
			s, c := theirs(t)
			ctx := t.Context()
			hook := &refusing{name: "unlink"}
			c.AddHook(hook)
			if _, err := s.Prepare(ctx, "owed_1"); err != nil {
				t.Fatal(err)
			}
			set(t, c, "quotabench:owed_1:k", "1")
			hook.on.Store(true)
			if err := s.Wipe(ctx, "owed_1"); err == nil {
				t.Fatal("Wipe has not failed")
			}
			hook.on.Store(false)
			var err error
			if later == "Close" {
				err = s.Close()
			} else if _, err = s.Prepare(ctx, "owed_2"); err == nil {
				err = s.Wipe(ctx, "owed_2")
			}
			if err != nil {
				t.Error(err)
			}
			if left := c.Keys(ctx, "quotabench:*").Val(); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// TestLeasesComeBack after a server has lost them.
func TestLeasesComeBack(t *testing.T) {
	s, c := theirs(t)
	ctx := t.Context()
	if _, err := s.Prepare(ctx, "mine_2"); err != nil {
		t.Fatal(err)
	}
	lease := "quotabench:lease-" + server.Us().Run
	c.Del(ctx, holdings, lease)
	s.Renew(ctx)
	if ttl := c.PTTL(ctx, lease).Val(); ttl <= server.LeaseRenewal || ttl > server.LeaseLife {
		t.Errorf("the lease has %v left", ttl)
	}
	if o, ok := server.ParseOwner(c.HGet(ctx, holdings, "mine_2").Val()); !ok || !o.Ours() ||
		o.Since.Location() != time.UTC {
		t.Errorf("the scope's entry is not there again: %+v", o)
	}
	if err := s.Wipe(ctx, "mine_2"); err != nil {
		t.Error(err)
	}
}

// TestHoldingsOfAnotherType: an error names the key that another program wrote, and what
// to do.
func TestHoldingsOfAnotherType(t *testing.T) {
	s, c := theirs(t)
	set(t, c, holdings, "x")
	if _, err := s.Holdings(t.Context(), true); err == nil || !strings.Contains(err.Error(), "DEL "+holdings) {
		t.Errorf("looking for what runs left: %v", err)
	}
	if _, err := s.Prepare(t.Context(), "mine_1"); err == nil || !strings.Contains(err.Error(), "DEL "+holdings) {
		t.Errorf("entering: %v", err)
	}
}
