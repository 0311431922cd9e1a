package memredis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/hold"
	"github.com/quotabench/quotabench/internal/memredis"
)

// onShared runs a test on both kinds of Redis in this process, with a client that reaches
// it by a socket, as a service does.
func onShared(t *testing.T, test func(t *testing.T, s *memredis.Shared, c *redis.Client)) {
	t.Helper()
	mini, err := memredis.NewMini()
	if err != nil {
		t.Fatal(err)
	}
	defer mini.Close()
	table := memredis.New()
	table.Watch = true
	for name, r := range map[string]memredis.Redis{"table": table, "miniredis": mini} {
		t.Run(name, func(t *testing.T) {
			s := memredis.Share(r)
			p, err := hold.Listen(s.Dial)
			if err != nil {
				t.Fatal(err)
			}
			c := redis.NewClient(&redis.Options{Addr: p.Addr(), Protocol: 3, MaxRetries: -1, ReadTimeout: 2 * time.Minute})
			t.Cleanup(func() {
				_ = c.Close()
				if err := errors.Join(p.Close(), p.Foul()); err != nil {
					t.Error(err)
				}
			})
			test(t, s, c)
			s.Do(func(r memredis.Redis) {
				if name := r.Unknown(); name != "" {
					t.Errorf("%s is not known", name)
				}
			})
		})
	}
}

// Keys expire when the clock is moved, and at no other time.
func TestSharedClock(t *testing.T) {
	onShared(t, func(t *testing.T, s *memredis.Shared, c *redis.Client) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s.Do(func(r memredis.Redis) { r.Reset(start.UnixNano()) })
		ctx := t.Context()
		if err := errors.Join(c.Info(ctx).Err(), c.Set(ctx, "brief", 1, time.Second).Err(), c.Set(ctx, "forever", 2, 0).Err()); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "brief 1s, forever 0s, "}, {999 * time.Millisecond, "brief 1ms, forever 0s, "}, {1001 * time.Millisecond, "forever 0s, "}} {
			got := ""
			s.Do(func(r memredis.Redis) {
				r.SetNow(start.Add(step.after).UnixNano())
				for _, k := range r.Keys(nil) {
					got += fmt.Sprintf("%s %v, ", k.Name, k.Left)
				}
			})
			now, err := c.Time(ctx).Result()
			if got != step.want || err != nil || !now.Equal(start.Add(step.after)) {
				t.Errorf("after %v: keys %sat %v, %v; want %s", step.after, got, now, err, step.want)
			}
		}
		if err := c.Get(ctx, "brief").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("an expired key: %v", err)
		}
	})
}

// Clients at the same time lose nothing, and a transaction notices another's write.
func TestSharedClients(t *testing.T) {
	onShared(t, func(t *testing.T, _ *memredis.Shared, c *redis.Client) {
		const clients, each = 8, 50
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range each {
					if err := c.Incr(t.Context(), "n").Err(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n, err := c.Get(t.Context(), "n").Int(); err != nil || n != clients*each {
			t.Errorf("%d increments were counted as %d, %v", clients*each, n, err)
		}
		err := c.Watch(t.Context(), func(tx *redis.Tx) error {
			c.Incr(t.Context(), "n")
			_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Set(t.Context(), "n", 0, 0).Err() })
			return err
		}, "n")
		if !errors.Is(err, redis.TxFailedErr) {
			t.Errorf("a conflict: %v", err)
		}
	})
}

// A reader waits for what is written later, and closing ends it; what is no command does too.
func TestSharedConnection(t *testing.T) {
	s := memredis.Share(memredis.New())
	for _, text := range []string{"", "garbage\r\n"} {
		c, err := s.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan string)
		go func() {
			var all bytes.Buffer
			_, err := io.Copy(&all, c)
			read <- fmt.Sprint(all.String(), err)
		}()
		if _, err := io.WriteString(c, "*1\r\n$4\r\nPING\r\n"); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if _, err := io.WriteString(c, text); err == nil {
				t.Error("garbage is a command")
			}
		} else if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := <-read; got != "+PONG\r\n<nil>" {
			t.Errorf("read %q", got)
		}
	}
}
