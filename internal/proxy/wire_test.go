package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
	"github.com/quotabench/quotabench/internal/proxy"
)

// varied are commands whose replies are of all kinds, errors too. K is a key.
var varied = []string{
	"PING", "PING hello", "ECHO x", "SET K 1", "GET K", "INCR K", "INCRBY K 41", "DECR K", "APPEND K abc", "STRLEN K",
	"GETRANGE K 0 1",
	"INCR K", "SETNX K 2", "SET K 5 NX", "SET K 5 XX GET", "GETSET K 7", "MGET K Kb K", "MSET Ka 1 Kb 2", "EXISTS K Ka Kz",
	"TYPE K",
	"EXPIRE K 1000", "PERSIST K", "TTL K", "PTTL Kz", "DEL K", "GET K", "HSET K f 1 g 2", "HGET K f", "HGET K z",
	"HGETALL K", "HMGET K f z",
	"HINCRBY K f 5", "HINCRBYFLOAT K f 0.5", "HEXISTS K f", "HLEN K", "HKEYS K", "HVALS K", "HDEL K f", "GET K",
	"LPUSH K x", "DEL K",
	"RPUSH K a b c", "LRANGE K 0 -1", "LPOP K", "LPOP K 2", "LLEN K", "LINDEX K 0", "DEL K", "SADD K a", "SISMEMBER K a",
	"SMISMEMBER K a b",
	"SMEMBERS K", "SCARD K", "SREM K a", "DEL K", "ZADD K 1 a 2.5 b", "ZSCORE K b", "ZSCORE K z",
	"ZRANGE K 0 -1 WITHSCORES", "ZINCRBY K 1.5 a",
	"ZRANGEBYSCORE K -inf +inf", "ZRANK K a", "ZRANK K z", "ZCARD K", "ZCOUNT K 0 9", "ZPOPMIN K",
	"ZREMRANGEBYSCORE K 0 9", "DEL K",
	"SET", "NOSUCH x y", "EVAL return(1) 0", "EVAL return{1,{2,{3}},'x'} 0", "EVAL return(nil) 0",
	"EVAL return{ok='FINE'} 0",
	"EVAL return{err='BAD'} 0", "EVAL return(redis.call('SET',KEYS[1],ARGV[1])) 1 K v",
	"EVALSHA 0123456789012345678901234567890123456789 0",
	"SCRIPT LOAD return(2)", "EVALSHA 7f923f79fe76194c868d7e1d0820de36700eb649 0",
	"SCRIPT EXISTS 7f923f79fe76194c868d7e1d0820de36700eb649 a",
	"MULTI", "INCR Ka", "GET Kz", "EXEC", "MULTI", "SET Ka 5", "DISCARD", "EXEC", "DISCARD", "MULTI", "MULTI", "NOSUCH",
	"EXEC", "WATCH Ka",
	"SET Ka 6", "MULTI", "GET Ka", "EXEC", "UNWATCH", "SELECT 0", "SELECT x", "MULTI", "EXEC", "TYPE Kz",
	"SET Ka \r\n\x00\xff", "GET Ka", "SET Ka ",
	"GET Ka", "RENAME Ka Kc", "COPY Kc Ka", "RANDOMKEY x", "OBJECT NOSUCH", "CLIENT SETNAME me", "CLIENT GETNAME",
	"BLPOP Kc 1", "TOUCH Kc",
}

// encoded is a command as clients send it; only the last word may have odd bytes.
func encoded(command, key string) []byte {
	words := strings.Split(command, " ")
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		if strings.HasPrefix(w, "K") && !strings.HasPrefix(w, "KEYS") {
			w = key + w
		}
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// Through the proxy each reply has the bytes that it has without, whether commands pass or
// are held and released.
func TestSameBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, hello := range []string{"2", "3"} {
			greet := "*2\r\n$5\r\nHELLO\r\n$1\r\n" + hello + "\r\n"
			o := b.direct.Options()
			straight, err := o.Dialer(t.Context(), o.Network, o.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = straight.Close() }()
			if o.Password != "" {
				b.write(straight, "AUTH "+o.Password)
				b.read(straight, "+OK\r\n")
			}
			passed := b.dial()
			held := b.dial()
			conns := []net.Conn{straight, passed, held}
			b.Hold(false)
			readers := make([]*resp.Reader, len(conns))
			for i, c := range conns {
				readers[i] = resp.NewReader(c)
				if _, err := io.WriteString(c, greet); err != nil {
					t.Fatal(err)
				}
				if _, err := readers[i].Reply(); err != nil {
					t.Fatal(err)
				}
			}
			steps := 0
			for _, command := range varied {
				var replies [3][]byte
				for i, c := range conns {
					b.Hold(i == 2)
					if _, err := c.Write(encoded(command, fmt.Sprintf("%skey-%s-%d-", b.prefix, hello, i))); err != nil {
						t.Fatal(err)
					}
					got := begin(func() error {
						raw, err := readers[i].Reply()
						replies[i] = bytes.Clone(raw)
						return err
					})
					if i == 2 {
						steps += b.release(got)
					}
					if err := b.end(got); err != nil {
						t.Fatalf("%s: %v", command, err)
					}
					replies[i] = bytes.ReplaceAll(replies[i], fmt.Appendf(nil, "%skey-%s-%d-", b.prefix, hello, i), []byte("key"))
				}
				if !bytes.Equal(replies[0], replies[1]) || !bytes.Equal(replies[0], replies[2]) {
					t.Errorf("HELLO %s: %s is answered by %q", hello, command, replies)
				}
			}
			if len(varied) < 100 || steps < 80 {
				t.Errorf("%d commands with %d steps", len(varied), steps)
			}
		}
		if err := b.Foul(); err != nil {
			t.Error(err)
		}
	})
}

// A server knows commands on a line of their own.
func TestInline(t *testing.T) {
	b := onServer(t)
	raw := b.dial()
	b.Hold(true)
	if _, err := fmt.Fprintf(raw, "\r\nping\nSET %s 1\r\n*0\r\n*-1\r\nincr %[1]s\n", b.key()); err != nil {
		t.Fatal(err)
	}
	b.read(raw, "+PONG\r\n")
	b.sent(b.holding(2)[0], "SET KEY 1", "OK")
	b.Hold(false)
	b.read(raw, "+OK\r\n:2\r\n")
	b.calm(0)
}

// Large payloads come through as they are, and a proxy reads a bounded amount ahead.
func TestLargePayloads(t *testing.T) {
	b := onServer(t)
	raw := b.dial()
	other := b.dial()
	b.Hold(true)
	const commands, ahead = 40, 16 // so many are more than 16 MiB, with their names
	big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<20/16)
	sent := begin(func() error {
		for range commands {
			_, err := raw.Write(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(b.key()), b.key(),
				len(big), big))
			if err != nil {
				return err
			}
		}
		return nil
	})
	b.until("what is read ahead", func(held []*proxy.Command) bool { return len(held) >= ahead })
	for range 500 { // in the time of which more would be read
		b.write(other, "PING")
		b.read(other, "+PONG\r\n")
	}
	if n := len(b.Held()); n > ahead {
		t.Errorf("%d commands of 1 MiB were read ahead", n)
	}
	for range commands {
		c := b.until("a command", func(held []*proxy.Command) bool { return len(held) > 0 })[0]
		if reply, err := c.Send(); err != nil || reply != "OK" {
			t.Fatal(reply, err)
		}
		c.Answer()
		b.read(raw, "+OK\r\n")
	}
	if err := b.end(sent); err != nil {
		t.Fatal(err)
	}
	b.Hold(false)
	b.write(raw, "GET "+b.key())
	b.read(raw, fmt.Sprintf("$%d\r\n", len(big)))
	got := make([]byte, len(big))
	if _, err := io.ReadFull(raw, got); err != nil || !bytes.Equal(got, big) {
		t.Errorf("the payload has changed, %v", err)
	}
	b.calm(0)
}

// Replies of RESP3 that no server in the tests gives come through as they are.
func TestRepliesOfRESP3(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", "-ERR x\r\n": "error: ERR x", ":-5\r\n": "-5", "$3\r\na\nb\r\n": `"a\nb"`, "$0\r\n\r\n": "", "$-1\r\n": "nil", "*-1\r\n": "nil",
		"_\r\n": "nil", "#t\r\n": "t", ",1.5\r\n": "1.5", ",inf\r\n": "inf",
		"(3492890328409238509324850943850943825024385\r\n": "3492890328409238509324850943850943825024385",
		"!5\r\nERR x\r\n": "error: ERR x", "=7\r\ntxt:abc\r\n": "abc", "%1\r\n+a\r\n:1\r\n": "[a 1]",
		"~2\r\n:1\r\n:2\r\n": "[1 2]", "*0\r\n": "[]",
		"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n*1\r\n_\r\n": "[ttl 3600] [1 [nil]]",
		"*1\r\n|1\r\n+a\r\n+b\r\n:7\r\n":                 "[[a b] 7]",
		"$200\r\n" + strings.Repeat("x", 200) + "\r\n":   strings.Repeat("x", 160) + "...",
	} {
		p, service, redis := duel(t)
		p.Hold(true)
		if _, err := io.WriteString(service, "GET k\r\n"); err != nil {
			t.Fatal(err)
		}
		for len(p.Held()) == 0 {
			<-p.Changed()
		}
		const push = ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
		go func() {
			_, _ = io.ReadFull(redis, make([]byte, 7))
			_, _ = io.WriteString(redis, push+text)
		}()
		c := p.Held()[0]
		reply, err := c.Send()
		if err != nil || reply != want {
			t.Errorf("%.60q is described as %q, %v; want %q", text, reply, err, want)
		}
		c.Answer()
		got := make([]byte, len(push)+len(text))
		if _, err := io.ReadFull(service, got); err != nil || string(got) != push+text {
			t.Errorf("%.60q arrives as %.80q, %v", text, got, err)
		}
		if err := p.Foul(); err != nil {
			t.Error(err)
		}
	}
}

// A command that passes leaves next to nothing behind, and one that is held a few small
// pieces, whatever is in it.
func TestAllocations(t *testing.T) {
	p, service, redis := duel(t)
	const reply = "$-1\r\n"
	command := encoded("SET k "+strings.Repeat("v", 1000), "")
	go func() {
		for in := make([]byte, len(command)); ; {
			if _, err := io.ReadFull(redis, in); err != nil {
				return
			}
			_, _ = redis.Write([]byte(reply))
		}
	}()
	got := make([]byte, len(reply))
	for _, on := range []bool{false, true} {
		p.Hold(on)
		n := testing.AllocsPerRun(50, func() {
			_, _ = service.Write(command)
			for on {
				if held := p.Held(); len(held) > 0 {
					_, _ = held[0].Send()
					held[0].Answer()
					break
				}
				<-p.Changed()
			}
			_, _ = io.ReadFull(service, got)
		})
		if most := map[bool]float64{false: 2, true: 20}[on]; n > most {
			t.Errorf("held %v: %v allocations per command, want at most %v", on, n, most)
		}
	}
}
