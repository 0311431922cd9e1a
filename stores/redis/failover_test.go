package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestCanFailOver asks what sentinels have no time for.
func TestCanFailOver(t *testing.T) {
	testenv.Long(t)
	if err := storetest.Redis(t).CanFailOver(0, time.Minute); err == nil {
		t.Error("a server without a replica can fail over")
	}
	s := started(t, "process:sentinel=1")
	for _, c := range []struct {
		behind, left time.Duration
		want         string
	}{
		{0, 5 * time.Second, ""}, {5 * time.Second, time.Minute, ""},
		{5001 * time.Millisecond, time.Minute, "give failover=5s"}, {0, 4999 * time.Millisecond, "--duration"},
	} {
		if err := s.CanFailOver(c.behind, c.left); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("behind by %v, %v left: %v, want %q", c.behind, c.left, err, c.want)
		}
	}
}

// TestFailOver plants writes that a replica has, and such that it has not got, and kills
// the master, twice: the first are there when the replica has taken its place.
func TestFailOver(t *testing.T) {
	testenv.Long(t)
	for spec, processes := range map[string]int{"process:replicas=1": 2, "process:sentinel=3,replicas=2": 6} {
		t.Run(spec, func(t *testing.T) { failOver(t, spec, processes) })
	}
}

func failOver(t *testing.T, spec string, processes int) {
	s := started(t, spec)
	ctx := t.Context()
	if err := s.Recover(ctx); err != nil {
		t.Fatalf("recover where nothing happened: %v", err)
	}
	c := clientOf(t, s, stores.ConnOptions{Pool: 3})
	for round := range 2 {
		pid := s.PID()
		key := fmt.Sprint("arrived", round)
		if err := c.Set(ctx, key, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if n, err := waited(t, c); n < 1 || err != nil {
			t.Fatalf("WAIT: %d, %v", n, err)
		}
		if err := s.Replicate(ctx); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if err := s.Detach(ctx); err != nil {
				t.Fatal(err)
			}
			if err := c.Set(ctx, "lost", 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.FailOver(ctx); err != nil {
			t.Fatal(err)
		}
		_ = c.Ping(ctx).Err() // connections of before are found broken
		var err error
		for range 5 {
			if err = c.Set(ctx, "after", round, 0).Err(); err == nil {
				break
			}
		}
		if n, err := c.Exists(ctx, key).Result(); err != nil || n != 1 {
			t.Errorf("what the replica had is there %d times (%v)", n, err)
		}
		if n, err := c.Exists(ctx, "lost").Result(); err != nil || n != 0 {
			t.Errorf("what the replica did not have is there %d times (%v)", n, err)
		}
		if err != nil {
			t.Errorf("writing to the new master: %v", err)
		}
		if err := s.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		if pids, err := s.Processes(ctx); err != nil || len(pids) != processes || s.PID() == pid {
			t.Errorf("processes %v with the master %d, which was %d before (%v)", pids, s.PID(), pid, err)
		}
		fresh := clientOf(t, s, stores.ConnOptions{})
		if v, err := fresh.Get(ctx, "after").Int(); err != nil || v != round {
			t.Errorf("a new client reads %d (%v)", v, err)
		}
	}
	if n, err := waited(t, c); n < 1 || err != nil {
		t.Errorf("WAIT of the second replica: %d, %v", n, err)
	}
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := waited(t, c); n < 1 || err != nil {
		t.Errorf("WAIT of a replica that was only detached: %d, %v", n, err)
	}
}

// TestDetachesTogether: replicas that are detached while callers write have the same writes.
func TestDetachesTogether(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:sentinel=1,replicas=3")
	c, ctx := clientOf(t, s, stores.ConnOptions{Pool: 4}), t.Context()
	var writers errgroup.Group
	var stop atomic.Bool
	for range 4 {
		writers.Go(func() (err error) {
			for !stop.Load() && err == nil {
				err = c.Incr(ctx, "n").Err()
			}
			return err
		})
	}
	storecheck.Eventually(t, "a write", func() bool { return c.Exists(ctx, "n").Val() == 1 })
	err := s.Detach(ctx)
	stop.Store(true)
	if err = errors.Join(err, writers.Wait()); err != nil {
		t.Fatal(err)
	}
	first := ""
	for _, h := range s.Heirs() {
		n := h.Get(ctx, "n").Val()
		if first == "" {
			first = n
		}
		if n != first || n == "" {
			t.Errorf("a replica has %q, and the first one %q", n, first)
		}
	}
}
