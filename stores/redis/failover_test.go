package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
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
		if err := s.CanFailOver(c.behind, c.left); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
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
			err = c.Set(ctx, "after", round, 0).Err()
			if err == nil {
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
	c := clientOf(t, s, stores.ConnOptions{Pool: 4})
	ctx := t.Context()
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
	err = errors.Join(err, writers.Wait())
	if err != nil {
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

const lag = 300 * time.Millisecond

// TestLag counts writes to a master whose replica is late, and kills it: what was sent so shortly before that it cannot
// have arrived is lost, and nothing that WAIT confirmed is.
func TestLag(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:replicas=1")
	for try := 1; ; try++ {
		sent, lost, late := killed(t, s, func(c goredis.UniversalClient) bool {
			return c.Incr(t.Context(), "n").Err() == nil
		})
		if late == 0 && try < 5 {
			t.Log("the failover took too long")
			continue
		}
		if late == 0 || lost < late {
			t.Errorf("%d of %d writes are lost, and %d were sent less than %v before", lost, sent, late, lag)
		}
		break
	}
	sent, lost, _ := killed(t, s, func(c goredis.UniversalClient) bool {
		var confirmed *goredis.Cmd
		begun := clock.Nano()
		_, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
			p.Incr(t.Context(), "n")
			confirmed = p.Do(t.Context(), "WAIT", 1, 5000)
			return nil
		})
		if took := clock.Nano() - begun; err == nil && took < int64(lag) {
			t.Errorf("WAIT took %v", time.Duration(took))
			return false
		}
		return err == nil && confirmed.Val() == int64(1)
	})
	if sent == 0 || lost > 0 {
		t.Errorf("%d of %d writes that were confirmed are lost", lost, sent)
	}
	// A replica that was late and did not take over follows in time again.
	if _, err := s.Lag(t.Context(), lag); err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, s, stores.ConnOptions{})
	least := time.Hour
	for range 10 {
		begun := clock.Nano()
		if n, err := waited(t, c); n != 1 || err != nil {
			t.Fatalf("WAIT: %d, %v", n, err)
		}
		least = min(least, time.Duration(clock.Nano()-begun))
	}
	if least >= lag {
		t.Errorf("WAIT takes %v", least)
	}
}

// killed has a caller write until the master dies. Late are the writes that were sent so shortly before that the
// replica cannot have them.
func killed(t *testing.T, s *redis.Store, write func(goredis.UniversalClient) bool) (sent, lost, late int64) {
	t.Helper()
	ctx := t.Context()
	if yes, err := s.Lag(ctx, lag); err != nil || !yes {
		t.Fatalf("%t, %v", yes, err)
	}
	c := clientOf(t, s, stores.ConnOptions{})
	var at []int64 // when each write was sent that is confirmed
	var count atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			now := clock.Nano()
			if !write(c) { // the master is dead
				return
			}
			at = append(at, now)
			count.Add(1)
		}
	}()
	storecheck.Eventually(t, "a write", func() bool { return count.Load() > 0 })
	time.Sleep(lag)
	before := clock.Nano()
	err := s.FailOver(ctx)
	over := clock.Nano()
	_ = c.Close()
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	fresh := clientOf(t, s, stores.ConnOptions{})
	has, _ := fresh.Get(ctx, "n").Int64()
	for _, x := range at {
		if x > over-int64(lag) && x < before {
			late++
		}
	}
	if err := fresh.Del(ctx, "n").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	return int64(len(at)), int64(len(at)) - has, late
}
