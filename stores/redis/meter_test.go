package redis_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// eachRedis runs f on every kind of server that can be had here.
func eachRedis(t *testing.T, f func(t *testing.T, r *redis.Store)) {
	t.Run("embedded", func(t *testing.T) { f(t, storetest.EmbeddedRedis(t)) })
	t.Run("process", func(t *testing.T) { f(t, storetest.Redis(t)) })
	t.Run("container", func(t *testing.T) { f(t, storetest.ContainerRedis(t)) })
}

func client(t *testing.T, r *redis.Store, o redis.ClientOptions) *goredis.Client {
	t.Helper()
	c := r.Client(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestMeterCountsRedisExactly(t *testing.T) {
	script := goredis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	cases := []struct {
		name                 string
		commands, roundTrips int64
		do                   func(ctx context.Context, c *goredis.Client, key string) error
	}{
		{"single commands", 10, 10, func(ctx context.Context, c *goredis.Client, key string) error {
			for range 10 {
				if err := c.Incr(ctx, key).Err(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"pipeline", 12, 1, func(ctx context.Context, c *goredis.Client, key string) error {
			_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for range 12 {
					p.Incr(ctx, key)
				}
				return nil
			})
			return err
		}},
		{"transaction", 4, 1, func(ctx context.Context, c *goredis.Client, key string) error { // MULTI and EXEC are two
			_, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Incr(ctx, key)
				p.Persist(ctx, key)
				return nil
			})
			return err
		}},
		{"script, loaded", 1, 1, func(ctx context.Context, c *goredis.Client, key string) error {
			return script.EvalSha(ctx, c, []string{key}, 3).Err()
		}},
		{"large value", 1, 1, func(ctx context.Context, c *goredis.Client, key string) error {
			return c.Set(ctx, key, make([]byte, 300_000), 0).Err()
		}},
	}
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		ctx := context.Background()
		var m stores.Meter
		c := client(t, r, redis.ClientOptions{Pool: 3, Meter: &m})
		if err := script.Load(ctx, c).Err(); err != nil {
			t.Fatal(err)
		}
		for _, tc := range cases {
			before := m.Snapshot()
			if err := tc.do(ctx, c, storetest.Prefix(t)+"k"); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			got := m.Snapshot().Sub(before)
			if got.Commands != tc.commands || got.RoundTrips != tc.roundTrips {
				t.Errorf("%s: %d commands in %d round trips, want %d in %d", tc.name, got.Commands, got.RoundTrips, tc.commands,
					tc.roundTrips)
			}
			if got.BytesOut == 0 || got.BytesIn == 0 {
				t.Errorf("%s: no bytes: %+v", tc.name, got)
			}
		}
		if n := m.Unparsed.Load(); n != 0 {
			t.Errorf("%d connections could not be followed", n)
		}
	})
}

func TestMeterAgreesWithTheServer(t *testing.T) {
	r := storetest.Redis(t)
	ctx := context.Background()
	var m stores.Meter
	c := client(t, r, redis.ClientOptions{Pool: 8, Meter: &m})
	before, err := r.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	key := storetest.Prefix(t) + "k"
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				if err := c.Incr(ctx, key).Err(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	after, err := r.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := m.Snapshot()
	if got.Commands != 3200 || got.RoundTrips != 3200 {
		t.Errorf("%d commands in %d round trips, want 3200 in 3200", got.Commands, got.RoundTrips)
	}
	// One of the two INFO is in between.
	if served := after.Commands - before.Commands - 1; served != got.Commands+got.SetupCommands {
		t.Errorf("the server counted %d commands, the meter %d + %d for set-up", served, got.Commands, got.SetupCommands)
	}
	if got.Connections < 1 || got.Connections > 8 {
		t.Errorf("%d connections from a pool of 8", got.Connections)
	}
}

// deafConn loses the first reply to an INCR: the command takes effect, and its
// caller sees a broken connection.
type deafConn struct {
	net.Conn
	armed *atomic.Bool
	incr  atomic.Bool
}

func (c *deafConn) Write(p []byte) (int, error) {
	c.incr.Store(len(p) > 12 && string(p[8:12]) == "incr")
	return c.Conn.Write(p)
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.incr.Load() && c.armed.CompareAndSwap(true, false) {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestMeterSeesRetriesOfTheClient(t *testing.T) {
	eachRedis(t, func(t *testing.T, r *redis.Store) {
		for _, tc := range []struct {
			retries         int
			fails           bool
			commands, value int64
		}{
			{retries: 0, fails: true, commands: 1, value: 1},
			{retries: 1, fails: false, commands: 2, value: 2}, // counted twice, answered once
		} {
			ctx := context.Background()
			key := storetest.Prefix(t) + "k"
			var m stores.Meter
			var armed atomic.Bool
			armed.Store(true)
			c := client(t, r, redis.ClientOptions{Pool: 1, Retries: tc.retries, Meter: &m,
				Wrap: func(c net.Conn) net.Conn { return &deafConn{Conn: c, armed: &armed} }})
			err := c.Incr(ctx, key).Err()
			if (err != nil) != tc.fails {
				t.Errorf("%d retries: error %v", tc.retries, err)
			}
			if armed.Load() {
				t.Fatal("no reply was lost: the test tests nothing")
			}
			if n := m.Commands.Load(); n != tc.commands {
				t.Errorf("%d retries: %d commands, want %d", tc.retries, n, tc.commands)
			}
			if v, err := r.Admin().Get(ctx, key).Int64(); err != nil || v != tc.value {
				t.Errorf("%d retries: the counter is %d (%v), want %d", tc.retries, v, err, tc.value)
			}
		}
	})
}
