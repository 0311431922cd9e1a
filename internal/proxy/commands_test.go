package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

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
			if !held[0].First() || held[1].First() || held[2].First() {
				t.Error("not the first command of a pipeline is the first")
			}
			b.sent(held[0], "incr KEY", "1")
			held[0].Answer()
			if held[0].First() || !held[1].First() || held[2].First() {
				t.Error("the second command is not the first once the first is answered")
			}
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
			before := len(b.Passed())
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

// What each command is taken for: held, passed, passed and counted, or the beginning of
// a connection on which nothing is held.
func TestManners(t *testing.T) {
	for fate, commands := range map[string][]string{
		"held": {
			"get k", "SET k v", "NoSuchCommandOfAnyServerThatThereIs x", "time", "watch k", "eval x 0", "fcall f 0",
			"publish c m", "xread COUNT 1 streams k 0",
			"script flush", "SCRIPT FLUSH ASYNC", "function DELETE f", "exec", "flushall", "scan 0", "zadd k 1 subscribe",
		},
		"passed": {
			"HELLO 3", "auth p", "client SETNAME reply", "select 1", "ping", "info", "command", "config get x", "role",
			"readonly", "echo k", "latency doctor",
			"memory usage k", "script load x", "SCRIPT EXISTS x", "function list", "unwatch", "discard", "reset", "exec now",
			"multi now", "monitor", "PSYNC ? -1",
		},
		"counted": {"blpop k 0", "BRPOP k 0", "blmove a b left left 0", "bzpopmin k 0", "xread block 0 streams k 0",
			"XREADGROUP group g c BLOCK 5 streams k >", "wait 1 0"},
		"opaque": {"subscribe c", "PSUBSCRIBE c", "client REPLY off"},
	} {
		for _, command := range commands {
			if got := fateOf(t, command); got != fate {
				t.Errorf("%s is %s, want %s", command, got, fate)
			}
		}
	}
}

// fateOf sends a command and a GET behind it.
func fateOf(t *testing.T, command string) string {
	t.Helper()
	p, service, redis := duel(t)
	arrived := make(chan string, 2)
	go func() {
		for r := resp.NewReader(redis); ; {
			args, _, err := r.Command()
			if err != nil {
				return
			}
			arrived <- string(args[0])
		}
	}()
	p.Hold(true)
	if _, err := service.Write(append(encoded(command, ""), encoded("GET end", "")...)); err != nil {
		t.Fatal(err)
	}
	for {
		if held := p.Held(); len(held) > 0 {
			switch {
			case strings.Join(held[0].Parts()[0], " ") == command:
				return "held"
			case len(p.Passed()) > 0:
				return "counted"
			default:
				return "passed"
			}
		}
		select {
		case <-p.Changed():
		case name := <-arrived:
			if name == "GET" && len(p.Passed()) == 2 {
				return "opaque"
			}
		}
	}
}
