package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/proxy"
)

// Two clients that read and then write lose an update or not, as the order says.
func TestOrderDecides(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, order := range []struct{ name, who, want string }{{"interleaved", "0101", "1"},
			{"one after the other", "0011", "2"}} {
			b.Hold(false)
			b.direct.Del(t.Context(), b.key())
			clients := []*redis.Client{b.client(2), b.client(3)}
			b.Hold(true)
			var done []chan error
			conns := map[int]int{} // of the clients
			for i, c := range clients {
				done = append(done, begin(func() error {
					n, err := c.Get(t.Context(), b.key()).Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					return c.Set(t.Context(), b.key(), n+1, 0).Err()
				}))
				conns[b.holding(i + 1)[i].Conn()] = i
			}
			steps := []int{0, 0}
			for _, w := range order.who {
				who := int(w - '0')
				held := b.until("the client's next command", func(held []*proxy.Command) bool {
					return slices.ContainsFunc(held, func(c *proxy.Command) bool {
						return conns[c.Conn()] == who && (c.Parts()[0][0] == "set") == (steps[who] == 1)
					})
				})
				for _, c := range held {
					if conns[c.Conn()] == who {
						if _, err := c.Send(); err != nil {
							t.Fatal(err)
						}
						c.Answer()
						steps[who]++
					}
				}
			}
			for _, d := range done {
				if err := b.end(d); err != nil {
					t.Error(err)
				}
			}
			if got := b.value(); got != order.want {
				t.Errorf("%s: the counter is %s, want %s", order.name, got, order.want)
			}
		}
		b.calm(0)
	})
}

func TestReplyLostAndCommandFailed(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		c := b.client(3)
		b.Hold(true)
		incr := func() chan error { return begin(func() error { return c.Incr(t.Context(), b.key()).Err() }) }
		done := incr()
		cmd := b.holding(1)[0]
		if got := b.value(); got != "" {
			t.Errorf("a command that is held has had its effect: %q", got)
		}
		b.sent(cmd, "incr KEY", "1")
		if got := b.value(); got != "1" {
			t.Errorf("after Send the value is %q", got)
		}
		cmd.Lose()
		if err := b.end(done); err == nil {
			t.Error("the client got the lost reply")
		}
		done = incr()
		b.holding(1)[0].Fail()
		if err := b.end(done); err == nil || b.value() != "1" {
			t.Errorf("a failed command: error %v, value %s", err, b.value())
		}
		done = incr()
		cmd = b.holding(1)[0]
		b.Cut()
		if err := b.end(done); err == nil || b.value() != "1" {
			t.Errorf("a cut connection: error %v, value %s", err, b.value())
		}
		if _, err := cmd.Send(); err == nil || len(b.Held()) > 0 {
			t.Errorf("after Cut a command can be sent, or is held: %d", len(b.Held()))
		}
		cmd.Answer()
		cmd.Lose()
		cmd.Fail()
		cmd.Stall()
		done = incr()
		b.let("incr KEY", "2")
		if err := b.end(done); err != nil {
			t.Error(err)
		}
		b.calm(0)
	})
}

// The client's own timeout ends a stalled command; one that comes late goes on.
func TestStall(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		c := b.client(2)
		b.Hold(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := begin(func() error { return c.Incr(ctx, b.key()).Err() })
		cmd := b.holding(1)[0]
		b.sent(cmd, "incr KEY", "1")
		cmd.Stall()
		b.holding(0)
		select {
		case err := <-done:
			t.Fatalf("a stalled command returned %v", err)
		default:
		}
		raw := b.dial()
		b.write(raw, "INCR "+b.key(), "GET "+b.key())
		late := b.holding(2)[0]
		b.sent(late, "INCR KEY", "2")
		late.Stall()
		b.holding(0)
		if late.Overtaken() {
			t.Error("what was sent before counts as sent after")
		}
		b.write(raw, "GET "+b.key())
		b.until("a command behind", func([]*proxy.Command) bool { return late.Overtaken() })
		late.Answer()
		b.read(raw, ":2\r\n")
		first := b.holding(2)[0]
		b.sent(first, "GET KEY", "2")
		first.Answer()
		b.let("GET KEY", "2")
		b.read(raw, "$1\r\n2\r\n$1\r\n2\r\n")

		b.write(raw, "INCR "+b.key(), "GET "+b.key())
		late = b.holding(2)[0]
		b.sent(late, "INCR KEY", "3")
		late.Stall()
		b.Hold(false) // which ends stalls
		b.read(raw, ":3\r\n$1\r\n3\r\n")
		cancel()
		if err := b.end(done); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.calm(0)
	})
}

// What the service has sent is under way although it has closed the connection.
func TestCommandsOutliveTheirConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.Hold(true)
		raw := b.dial()
		b.write(raw, "INCR "+b.key(), "INCR "+b.key())
		held := b.holding(2)
		if _, err := held[1].Send(); err == nil {
			t.Error("the second command of a pipeline can be sent before the first is answered")
		}
		b.sent(held[0], "INCR KEY", "1")
		held[0].Stall()
		_ = raw.Close()
		b.let("INCR KEY", "2")
		b.holding(0)

		raw = b.dial() // one that closes its half alone gets its replies
		b.write(raw, "INCR "+b.key(), "PING")
		b.holding(1)
		if err := raw.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b.let("INCR KEY", "3")
		if got, err := io.ReadAll(raw); err != nil || string(got) != ":3\r\n+PONG\r\n" {
			t.Errorf("read %q, %v", got, err)
		}
		b.calm(0)
	})
}

func TestClosedConnections(t *testing.T) {
	b := open(t, redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no Redis")
	}}), "")
	raw, err := net.Dial("tcp", b.door.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(clock.Wall{}.Now().Add(patience))
	if n, err := raw.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection without a Redis behind it gave %d bytes, %v", n, err)
	}
}
