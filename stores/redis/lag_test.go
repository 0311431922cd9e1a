package redis_test

import (
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

const lag = 300 * time.Millisecond

// TestLag counts writes to a master whose replica is late, and kills it: what was sent so shortly before that it cannot have
// arrived is lost, and nothing that WAIT confirmed is.
func TestLag(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:replicas=1")
	for try := 1; ; try++ {
		sent, lost, late := killed(t, s, func(c goredis.UniversalClient) bool { return c.Incr(t.Context(), "n").Err() == nil })
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
	c, least := clientOf(t, s, stores.ConnOptions{}), time.Hour
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

// killed has a caller write until the master dies. Late are the writes that were sent so shortly before that the replica
// cannot have them.
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
