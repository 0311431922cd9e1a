package sched_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// onStores runs f on each in-process store, with a client whose commands park.
func onStores(t *testing.T, f func(t *testing.T, r fakeredis.Redis, c *redis.Client)) {
	t.Helper()
	mini, err := fakeredis.NewMini()
	check(t, err)
	for _, r := range []fakeredis.Redis{fakeredis.New(), mini} {
		t.Run(fmt.Sprintf("%T", r), func(t *testing.T) {
			t.Cleanup(r.Close)
			c := fakeredis.Client(r)
			t.Cleanup(func() { check(t, c.Close()) })
			c.AddHook(sched.Hook{})
			f(t, r, c)
		})
	}
}

// follow empties the store and has it follow the scheduler's clock.
func follow(r fakeredis.Redis, s *sched.Scheduler) {
	r.Reset(start.UnixNano())
	s.OnSync(func(now time.Time) { r.SetNow(now.UnixNano()); r.ExpireDue() })
}

// The store answers on the caller's stack: values, pipelines, transactions,
// scripts, and time as the scheduler has it.
func TestInProcess(t *testing.T) { onStores(t, testInProcess) }

func testInProcess(t *testing.T, r fakeredis.Redis, c *redis.Client) {
	for range 2 { // a reset store is as good as new
		s := sched.New(sched.Config{Start: start})
		follow(r, s)
		var got []string
		s.Go("a", func(ctx context.Context) {
			check(t, c.Set(ctx, "k", strings.Repeat("x", 5000), time.Minute).Err())
			pipe := c.Pipeline()
			n := pipe.Incr(ctx, "n")
			m := pipe.IncrBy(ctx, "n", 4)
			_, err := pipe.Exec(ctx)
			check(t, err)
			tx := c.TxPipeline()
			o := tx.Incr(ctx, "n")
			_, err = tx.Exec(ctx)
			check(t, err)
			sha, err := c.ScriptLoad(ctx, "return redis.call('GET', KEYS[1])").Result()
			check(t, err)
			v, err := c.EvalSha(ctx, sha, []string{"n"}).Result()
			check(t, err)
			now, err := c.Time(ctx).Result()
			check(t, err)
			check(t, s.Clock(0).Sleep(ctx, time.Minute))
			left, err := c.Exists(ctx, "k").Result()
			check(t, err)
			got = append(got, fmt.Sprintf("%d %d %d %s %s %d", n.Val(), m.Val(), o.Val(), v, now.Sub(start), left))
		})
		check(t, s.Run(first))
		if want := "[1 5 6 6 0s 0]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// What a client library sends again happens again; the caller sees the last reply.
func TestRepeat(t *testing.T) { onStores(t, testRepeat) }

func testRepeat(t *testing.T, r fakeredis.Redis, c *redis.Client) {
	var trace []string
	s := sched.New(sched.Config{Start: start, SplitReplies: true, Observe: func(ev *sched.Event) {
		trace = append(trace, ev.String())
	}})
	follow(r, s)
	var n int64
	a := begin(s, "a", func(ctx context.Context) {
		var err error
		n, err = c.Incr(ctx, "n").Result()
		check(t, err)
	})
	s.Step(a)
	s.Repeat(a)
	s.Repeat(a)
	s.Step(a)
	if n != 3 || !a.Done() {
		t.Errorf("the caller sees %d, done %v", n, a.Done())
	}
	if got := strings.Join(trace, ", "); got != "a: start, a: INCR n, a: INCR n (repeated), a: INCR n (repeated), a: "+
		"reply to INCR n" {
		t.Errorf("trace %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("repeated what is not there")
		}
	}()
	s.Repeat(a)
}

func TestPrompt(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	rounds := 0
	jobs := s.NewJobs("")
	a := jobs.Start([]strategies.Job{{
		Name: "j", Every: hour, Pending: func() bool { return false },
		Run: func(context.Context) (bool, error) { rounds++; return false, nil },
	}})[0]
	if a.Ready() || a.Job().Every() != hour {
		t.Fatal("due before its time")
	}
	a.Job().Prompt()
	s.Step(a)
	if rounds != 1 || a.Ready() {
		t.Errorf("%d rounds, ready %v", rounds, a.Ready())
	}
	if at, ok := s.NextDeadline(); !ok || !at.Equal(start.Add(hour)) {
		t.Errorf("next round at %v: the period has moved", at)
	}
}
