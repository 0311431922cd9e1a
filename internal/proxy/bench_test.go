package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/proxy"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is how long something may take that always happens.
const patience = 2 * time.Minute

// bench is a Redis with a proxy before it.
type bench struct {
	*proxy.Proxy

	door   *proxy.Door
	t      *testing.T
	direct *redis.Client // past the proxy
	prefix string
}

// onBoth runs a test on miniredis and on a redis-server.
func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		c := redis.NewClient(&redis.Options{Addr: m.Addr()})
		t.Cleanup(func() { _ = c.Close() })
		test(t, open(t, c, ""))
	})
	t.Run("redis", func(t *testing.T) { test(t, onServer(t)) })
}

func onServer(t *testing.T) *bench {
	c, prefix := storetest.RedisClient(t)
	return open(t, c, prefix)
}

func open(t *testing.T, direct *redis.Client, prefix string) *bench {
	o := direct.Options()
	p := proxy.New()
	door, err := p.Redis("", func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{p, door, t, direct, prefix}
}

// client is one of the service, which does not repeat commands.
func (b *bench) client(protocol int) *redis.Client {
	o := b.direct.Options()
	c := redis.NewClient(&redis.Options{
		Addr: b.door.Addr(), Username: o.Username, Password: o.Password, Protocol: protocol,
		MaxRetries: -1, ReadTimeout: patience, PoolSize: 10, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	b.t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(b.t.Context()).Err(); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// until waits for a condition on what is held, without polling.
func (b *bench) until(what string, ok func(held []*proxy.Command) bool) []*proxy.Command {
	b.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		if held := b.Held(); ok(held) {
			return held
		}
		select {
		case <-b.Changed():
		case <-limit.C:
			b.t.Fatalf("waiting for %s, %d commands are held", what, len(b.Held()))
		}
	}
}

// holding waits until so many commands are held.
func (b *bench) holding(n int) []*proxy.Command {
	b.t.Helper()
	return b.until(fmt.Sprintf("%d commands", n), func(held []*proxy.Command) bool { return len(held) == n })
}

// let waits for one command, which must be as said, has it take effect and answers.
func (b *bench) let(text, reply string) {
	b.t.Helper()
	c := b.holding(1)[0]
	b.sent(c, text, reply)
	c.Answer()
}

func (b *bench) sent(c *proxy.Command, text, reply string) {
	b.t.Helper()
	if got := words(c); got != strings.ReplaceAll(text, "KEY", b.prefix+"k") {
		b.t.Fatalf("held is %q, want %q", got, text)
	}
	got, err := c.Send()
	start, open := strings.CutSuffix(reply, "*")
	if err != nil || got != reply && (!open || !strings.HasPrefix(got, start)) {
		b.t.Fatalf("%s is answered by %q, %v; want %q", text, got, err, reply)
	}
}

func words(c *proxy.Command) string {
	var parts []string
	for _, p := range c.Parts() {
		parts = append(parts, strings.Join(p, " "))
	}
	return strings.Join(parts, "; ")
}

// key is the one that tests share.
func (b *bench) key() string { return b.prefix + "k" }

// value is what the key has, seen past the proxy.
func (b *bench) value() string {
	b.t.Helper()
	v, err := b.direct.Get(b.t.Context(), b.key()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		b.t.Fatal(err)
	}
	return v
}

// calm requires that all was RESP and nothing passed unseen.
func (b *bench) calm(passed int) {
	b.t.Helper()
	if err := b.Foul(); err != nil || len(b.Passed()) != passed {
		b.t.Errorf("foul %v, %d commands passed, want %d", err, len(b.Passed()), passed)
	}
}

// begin calls f beside the test.
func begin(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func (b *bench) end(done <-chan error) error {
	b.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		b.t.Fatal("the client does not return")
		return nil
	}
}

func (b *bench) dial() net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.door.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(clock.Wall{}.Now().Add(patience))
	if o := b.direct.Options(); o.Password != "" {
		b.write(c, "AUTH "+o.Password)
		b.read(c, "+OK\r\n")
	}
	return c
}

// write sends commands in one piece.
func (b *bench) write(c net.Conn, commands ...string) {
	b.t.Helper()
	var text []byte
	for _, command := range commands {
		words := strings.Fields(command)
		text = fmt.Appendf(text, "*%d\r\n", len(words))
		for _, w := range words {
			text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if _, err := c.Write(text); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(c net.Conn, want string) {
	b.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		b.t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

// release has commands take effect until a client has its reply, and counts them.
func (b *bench) release(got chan error) (steps int) {
	b.t.Helper()
	limit := time.After(patience)
	for {
		for _, c := range b.Held() {
			if _, err := c.Send(); err != nil {
				b.t.Fatal(err)
			}
			c.Answer()
			steps++
		}
		select {
		case err := <-got:
			got <- err
			return steps
		case <-b.Changed():
		case <-limit:
			b.t.Fatal("no reply")
		}
	}
}

// duel is a proxy between two ends that the test plays.
func duel(t testing.TB) (p *proxy.Proxy, service, redis net.Conn) {
	ours, theirs := net.Pipe()
	p = proxy.New()
	door, err := p.Redis("", func(context.Context) (net.Conn, error) { return theirs, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close() // the second time, for some tests
		_ = ours.Close()
	})
	service, err = net.Dial("tcp", door.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	for _, c := range []net.Conn{service, ours} {
		_ = c.SetDeadline(clock.Wall{}.Now().Add(patience))
	}
	return p, service, ours
}
