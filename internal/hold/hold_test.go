package hold_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/hold"
	"github.com/quotabench/quotabench/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is how long something may take that always happens.
const patience = 2 * time.Minute

// bench is a Redis with a proxy before it.
type bench struct {
	*hold.Proxy

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
	p, err := hold.Listen(func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{p, t, direct, prefix}
}

// client is one of the service, which does not repeat commands.
func (b *bench) client(protocol int) *redis.Client {
	o := b.direct.Options()
	c := redis.NewClient(&redis.Options{
		Addr: b.Addr(), Username: o.Username, Password: o.Password, Protocol: protocol,
		MaxRetries: -1, ReadTimeout: patience, PoolSize: 10, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	b.t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(b.t.Context()).Err(); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// until waits for a condition on what is held, without polling.
func (b *bench) until(what string, ok func(held []*hold.Command) bool) []*hold.Command {
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
func (b *bench) holding(n int) []*hold.Command {
	b.t.Helper()
	return b.until(fmt.Sprintf("%d commands", n), func(held []*hold.Command) bool { return len(held) == n })
}

// let waits for one command, which must be as said, has it take effect and answers.
func (b *bench) let(text, reply string) {
	b.t.Helper()
	c := b.holding(1)[0]
	b.sent(c, text, reply)
	c.Answer()
}

func (b *bench) sent(c *hold.Command, text, reply string) {
	b.t.Helper()
	if got := words(c); got != strings.ReplaceAll(text, "KEY", b.prefix+"k") {
		b.t.Fatalf("held is %q, want %q", got, text)
	}
	got, err := c.Send()
	if err != nil || got != reply && !(strings.HasSuffix(reply, "*") && strings.HasPrefix(got, reply[:len(reply)-1])) {
		b.t.Fatalf("%s is answered by %q, %v; want %q", text, got, err, reply)
	}
}

func words(c *hold.Command) string {
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
	if err := b.Foul(); err != nil || b.Passed() != passed {
		b.t.Errorf("foul %v, %d commands passed, want %d", err, b.Passed(), passed)
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

// Two clients that read and then write lose an update or not, as the order says.
func TestOrderDecides(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, order := range []struct{ name, who, want string }{{"interleaved", "0101", "1"}, {"one after the other", "0011", "2"}} {
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
				held := b.until("the client's next command", func(held []*hold.Command) bool {
					return slices.ContainsFunc(held, func(c *hold.Command) bool {
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
		late.Answer()
		b.read(raw, ":2\r\n")
		b.let("GET KEY", "2")
		b.read(raw, "$1\r\n2\r\n")

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

func (b *bench) dial() net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
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

func TestPipeline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, protocol := range []int{2, 3} {
			b.direct.Del(t.Context(), b.key())
			c := b.client(protocol)
			b.Hold(true)
			var cmds []redis.Cmder
			done := begin(func() (err error) {
				pipe := c.Pipeline()
				pipe.Incr(t.Context(), b.key())
				pipe.Ping(t.Context())
				pipe.HGetAll(t.Context(), b.key())
				pipe.Get(t.Context(), b.key())
				cmds, err = pipe.Exec(t.Context())
				return err
			})
			held := b.holding(3)
			b.sent(held[0], "incr KEY", "1")
			held[0].Answer()
			b.sent(held[1], "hgetall KEY", "error: WRONGTYPE*")
			b.direct.Incr(t.Context(), b.key()) // another instance, in between
			held[1].Answer()
			b.let("get KEY", "2")
			if err := b.end(done); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") || len(cmds) != 4 {
				t.Fatalf("pipeline: %v, %v", err, cmds)
			}
			if ping, get := cmds[1].(*redis.StatusCmd).Val(), cmds[3].(*redis.StringCmd).Val(); ping != "PONG" || get != "2" {
				t.Errorf("pipeline answers %s, %s", ping, get)
			}
			b.Hold(false)
		}
		b.calm(0)
	})
}

func TestTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		c := b.client(3)
		b.Hold(true)
		for _, conflict := range []bool{false, true} {
			b.direct.Set(t.Context(), b.key(), 1, 0)
			done := begin(func() error {
				return c.Watch(t.Context(), func(tx *redis.Tx) error {
					n, err := tx.Get(t.Context(), b.key()).Int()
					if err != nil {
						return err
					}
					_, err = tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
						p.Set(t.Context(), b.key(), n+1, 0)
						p.Expire(t.Context(), b.key(), time.Hour)
						return nil
					})
					return err
				}, b.key())
			})
			b.let("watch KEY", "OK")
			b.let("get KEY", "1")
			want := "[OK 1]"
			exec := b.holding(1)[0]
			if conflict {
				want = "nil"
				b.direct.Set(t.Context(), b.key(), 9, 0)
			}
			b.sent(exec, "set KEY 2; expire KEY 3600", want)
			exec.Answer()
			switch err := b.end(done); {
			case conflict && (!errors.Is(err, redis.TxFailedErr) || b.value() != "9"):
				t.Errorf("conflict: %v, value %s", err, b.value())
			case !conflict && (err != nil || b.value() != "2"):
				t.Errorf("no conflict: %v, value %s", err, b.value())
			}
		}
		raw := b.dial()
		b.write(raw, "MULTI", "SET "+b.key()+" 5", "DISCARD", "MULTI", "GET", "EXEC")
		r := bufio.NewReader(raw)
		for _, want := range []string{"+OK", "+QUEUED", "+OK", "+OK", "-ERR wrong number"} {
			if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
				t.Fatalf("read %q, %v; want %q", line, err, want)
			}
		}
		b.let("GET", "error: EXECABORT*")
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "-EXECABORT") || b.value() != "9" {
			t.Errorf("read %q, %v; value %s", line, err, b.value())
		}
		b.calm(0)
	})
}

func TestScripts(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		c := b.client(2)
		b.Hold(true)
		script := redis.NewScript("-- " + b.key() + "\nreturn redis.call('INCR', KEYS[1])")
		done := begin(func() error { return script.Run(t.Context(), c, []string{b.key()}).Err() })
		b.let("evalsha "+script.Hash()+" 1 KEY", "error: NOSCRIPT*")
		held := b.holding(1)
		if name := held[0].Parts()[0][0]; name != "eval" {
			t.Errorf("after NOSCRIPT comes %s", name)
		}
		if reply, err := held[0].Send(); err != nil || reply != "1" {
			t.Errorf("EVAL answers %s, %v", reply, err)
		}
		held[0].Answer()
		if err := b.end(done); err != nil {
			t.Error(err)
		}
		if err := script.Load(t.Context(), c).Err(); err != nil { // passes
			t.Error(err)
		}
		b.calm(0)
	})
}

// What waits by itself passes, and is counted.
func TestPassed(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, protocol := range []int{2, 3} {
			c := b.client(protocol)
			b.Hold(true)
			before := b.Passed()
			sub := c.Subscribe(t.Context(), b.key())
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.direct.Publish(t.Context(), b.key(), "hello")
			if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "hello" {
				t.Errorf("received %v, %v", m, err)
			}
			done := begin(func() error { return c.BLPop(t.Context(), 0, b.key()).Err() })
			b.direct.RPush(t.Context(), b.key(), "x")
			if err := b.end(done); err != nil {
				t.Error(err)
			}
			_ = sub.Close()
			b.calm(before + 2)
			b.Hold(false)
			b.direct.RPush(t.Context(), b.key(), "x")
			if err := c.BLPop(t.Context(), 0, b.key()).Err(); err != nil {
				t.Error(err)
			}
			b.calm(before + 2) // nothing is counted that nobody asked to hold
		}
	})
}

// Redis refuses MULTI of a user without leave; what was taken for queued has had its
// effect then.
func TestRefusedTransactionIsCounted(t *testing.T) {
	b := onServer(t)
	user := strings.NewReplacer(":", "", "{", "", "}", "").Replace(b.prefix) + "u"
	if err := b.direct.Do(t.Context(), "acl", "setuser", user, "on", ">p", "~*", "+@all", "-multi").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.direct.Do(context.Background(), "acl", "deluser", user) })
	b.Hold(true)
	raw := b.dial()
	b.write(raw, "AUTH "+user+" p")
	b.read(raw, "+OK\r\n")
	b.write(raw, "MULTI", "INCR "+b.key())
	r := bufio.NewReader(raw)
	for _, want := range []string{"-NOPERM", ":1"} {
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("read %q, %v; want %q", line, err, want)
		}
	}
	b.calm(1)
}

func TestRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.Hold(true)
		raw := b.dial()
		b.write(raw, "PING", "MONITOR", "PSYNC ? -1", "PING")
		r := bufio.NewReader(raw)
		for _, want := range []string{"+PONG", "-ERR unknown command", "-ERR unknown command", "+PONG"} {
			if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
				t.Fatalf("read %q, %v; want %q", line, err, want)
			}
		}
		b.calm(0)
	})
}

func TestClosedConnections(t *testing.T) {
	b := open(t, redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no Redis")
	}}), "")
	raw, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(patience))
	if n, err := raw.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection without a Redis behind it gave %d bytes, %v", n, err)
	}
}
