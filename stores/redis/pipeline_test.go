package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// pipelined is a client with pipelines, its meter, and the prefix of its keys.
func pipelined(t *testing.T, s *redis.Store, o stores.ConnOptions) (goredis.UniversalClient, *stores.Meter, string) {
	t.Helper()
	m := new(stores.Meter)
	o.AutoPipeline = true
	o.Meter = m
	scope := storetest.Scope(t)
	c, ok := connect(t, s, scope, o).Client().(goredis.UniversalClient)
	if !ok {
		t.Fatal("the client is no Redis client")
	}
	t.Cleanup(func() {
		if err := s.Wipe(context.Background(), scope); err != nil {
			t.Error(err)
		}
	})
	return c, m, scope.Prefix()
}

// onEach calls f with an embedded Redis, a server and a cluster.
func onEach(t *testing.T, f func(t *testing.T, s *redis.Store)) {
	t.Run("embedded", func(t *testing.T) { f(t, storetest.EmbeddedRedis(t)) })
	t.Run("server", func(t *testing.T) { f(t, storetest.Redis(t)) })
	t.Run("cluster", func(t *testing.T) {
		testenv.Long(t)
		storetest.Redis(t) // or skip
		s, err := redis.Open(t.Context(), "process:cluster=3", stores.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		f(t, s)
	})
}

// TestPipelinesAreShared: callers that come at the same time have one round trip between
// them, each gets its own reply, and a plain client makes one for each.
func TestPipelinesAreShared(t *testing.T) {
	const callers, each = 32, 50
	onEach(t, func(t *testing.T, s *redis.Store) {
		for from, tries := clock.Nano(), []bool{false, true}; len(tries) > 0; tries = tries[1:] {
			auto := tries[0]
			var m stores.Meter
			scope := storetest.Scope(t)
			c := connect(t, s, scope, stores.ConnOptions{Pool: callers, Meter: &m,
				AutoPipeline: auto}).Client().(goredis.UniversalClient)
			before := m.Snapshot()
			replies := make([][]int64, callers)
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for range each {
						n, err := c.Incr(context.Background(), scope.Prefix()+"n").Result()
						if err != nil {
							t.Error(err)
							return
						}
						replies[i] = append(replies[i], n)
					}
				})
			}
			wg.Wait()
			n := m.Snapshot().Sub(before)
			if n.Commands != callers*each {
				t.Errorf("pipelines %v: %d commands are metered, want %d", auto, n.Commands, callers*each)
			}
			switch shared := n.RoundTrips < n.Commands/2; {
			case shared == auto:
			case auto && clock.Nano()-from < int64(time.Minute): // a busy machine runs one caller after the other
				tries = append(tries, auto)
			default:
				t.Errorf("pipelines %v: %d round trips for %d commands", auto, n.RoundTrips, n.Commands)
			}
			var all []int64
			for _, r := range replies {
				if !slices.IsSorted(r) {
					t.Errorf("pipelines %v: a caller's replies are out of order: %v", auto, r)
				}
				all = append(all, r...)
			}
			slices.Sort(all)
			for i, n := range all {
				if n != int64(i+1) {
					t.Fatalf("pipelines %v: reply %d is %d: one was lost or given twice", auto, i, n)
				}
			}
			if err := s.Wipe(t.Context(), scope); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOutsideOfPipelines: commands that block, transactions, explicit pipelines, scripts
// and subscriptions work as with a plain client, and hold up nobody.
func TestOutsideOfPipelines(t *testing.T) {
	onEach(t, func(t *testing.T, s *redis.Store) {
		c, _, prefix := pipelined(t, s, stores.ConnOptions{Pool: 8})
		prefix += "{one}" // one slot
		ctx := t.Context()

		// The blocked caller waits for what the others do after it.
		popped := make(chan error, 1)
		go func() {
			got, err := c.BLPop(ctx, 2*time.Minute, prefix+"list").Result()
			if err == nil && (len(got) != 2 || got[1] != "x") {
				err = errors.New("BLPOP gives " + strings.Join(got, " "))
			}
			popped <- err
		}()
		for range 20 {
			if err := c.Incr(ctx, prefix+"n").Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.LPush(ctx, prefix+"list", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if err := <-popped; err != nil {
			t.Error(err)
		}

		// A watched key that another caller writes to fails the transaction; one that nobody
		// writes to does not.
		for _, disturbed := range []bool{true, false} {
			err := c.Watch(ctx, func(tx *goredis.Tx) error {
				n, err := tx.Get(ctx, prefix+"n").Int64()
				if err != nil {
					return err
				}
				if disturbed {
					if err := c.Incr(ctx, prefix+"n").Err(); err != nil {
						return err
					}
				}
				_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error { p.Set(ctx, prefix+"n", n+100, 0); return nil })
				return err
			}, prefix+"n")
			if disturbed != errors.Is(err, goredis.TxFailedErr) || !disturbed && err != nil {
				t.Errorf("a transaction of which another caller disturbed the key: %v, and its error is %v", disturbed, err)
			}
		}
		if n, err := c.Get(ctx, prefix+"n").Int64(); err != nil || n != 121 {
			t.Errorf("the counter is %d (%v), want 121", n, err)
		}
		for name, pipe := range map[string]func(context.Context, func(goredis.Pipeliner) error) ([]goredis.Cmder,
			error){"a pipeline": c.Pipelined, "MULTI": c.TxPipelined} {
			cmds, err := pipe(ctx, func(p goredis.Pipeliner) error {
				p.Incr(ctx, prefix+"n")
				p.Get(ctx, prefix+"n")
				return nil
			})
			if err != nil || cmds[0].(*goredis.IntCmd).Val() < 122 || cmds[1].(*goredis.StringCmd).Err() != nil {
				t.Errorf("%s: %v, %v", name, cmds, err)
			}
		}
		// The server does not know the script: EVALSHA fails in a pipeline with others, and
		// EVAL follows.
		script := goredis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1]) -- " + prefix)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := script.Run(ctx, c, []string{prefix + "scripted"}, 2).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, err := c.Get(ctx, prefix+"scripted").Int64(); err != nil || n != 16 {
			t.Errorf("eight scripts added up to %d (%v), want 16", n, err)
		}
		// An error is that of its own command.
		if err := c.LPush(ctx, prefix+"scripted", 1).Err(); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("LPUSH to a counter: %v", err)
		}

		sub := c.Subscribe(ctx, prefix+"news")
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(ctx, prefix+"news", "hello").Err(); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
			t.Errorf("%v (%v), want what was published", m, err)
		}
	})
}

// TestPipelinesKeepNoContext: what docs/stores.md says of contexts, which a plain client
// keeps.
func TestPipelinesKeepNoContext(t *testing.T) {
	s := storetest.EmbeddedRedis(t)
	c, _, prefix := pipelined(t, s, stores.ConnOptions{Pool: 2})
	plain := connect(t, s, storetest.Scope(t), stores.ConnOptions{Pool: 2}).Client().(goredis.UniversalClient)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := plain.Incr(ended, prefix+"n").Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("a plain client under an ended context: %v", err)
	}
	if n, err := c.Incr(ended, prefix+"n").Result(); err != nil || n != 1 {
		t.Errorf("a client with pipelines under an ended context: %d, %v; docs/stores.md says that it goes on", n, err)
	}
}

// TestNoPipelinesOfALentClient: a client of another kind is handed out unchanged.
func TestNoPipelinesOfALentClient(t *testing.T) {
	server := storetest.EmbeddedRedis(t)
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"one": server.Info().Addr}})
	defer func() { _ = ring.Close() }()
	s, err := redis.FromClient(t.Context(), ring)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 1, AutoPipeline: true}); err == nil ||
		!strings.Contains(err.Error(), "use a client of a single server, or a URL") {
		t.Errorf("the error is %v, want one that says what to use", err)
	}
}
