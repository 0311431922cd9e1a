package sched_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

const hour = time.Hour

var start = time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)

// world is an in-process Redis that outlives schedulers.
type world struct {
	mini *miniredis.Miniredis
	rdb  *redis.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{mini: miniredis.NewMiniRedis()}
	w.rdb = w.client()
	t.Cleanup(func() {
		if err := w.rdb.Close(); err != nil {
			t.Error(err)
		}
		w.mini.Close()
	})
	return w
}

// client makes a client that has not dialled yet.
func (w *world) client() *redis.Client { return w.clientWith(sched.Hook{}) }

func (w *world) clientWith(hook sched.Hook) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return w.mini.Dial() },
		MaxRetries:               -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c.AddHook(hook)
	return c
}

// scheduler begins a fresh run over the emptied store.
func (w *world) scheduler(cfg sched.Config) *sched.Scheduler {
	w.mini.FlushAll()
	cfg.Start = start
	s := sched.New(cfg)
	last := start
	w.mini.SetTime(start)
	s.OnSync(func(now time.Time) {
		w.mini.SetTime(now)
		w.mini.FastForward(now.Sub(last))
		last = now
	})
	return s
}

// get reads a key from outside of all actors.
func (w *world) get(t testing.TB, key string) string {
	t.Helper()
	v, err := w.rdb.Get(context.Background(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

// begin makes an actor and takes it to its first operation, for tests in which
// the moment of starting makes no difference.
func begin(s *sched.Scheduler, name string, body func(ctx context.Context)) *sched.Actor {
	a := s.Go(name, body)
	s.Step(a)
	return a
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// first steps the ready actor with the lowest ID.
func first(ready []*sched.Actor) *sched.Actor { return ready[0] }
