package redis

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/stores"
)

// Replies of all kinds pass, in pieces of any size, one after the other.
func TestBoundsOfReplies(t *testing.T) {
	replies := "+OK\r\n-ERR no\r\n:5\r\n$3\r\na\nb\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n,1.5\r\n#t\r\n(123\r\n" +
		"*0\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n%1\r\n+k\r\n+v\r\n~1\r\n+m\r\n>2\r\n+message\r\n+x\r\n" +
		"|1\r\n+ttl\r\n:9\r\n+OK\r\n=5\r\ntxt:x\r\n!3\r\nERR\r\n"
	for size := 1; size < len(replies); size++ {
		var b bounds
		for range 3 {
			for rest := replies; rest != ""; {
				n := min(size, len(rest))
				if err := b.follow([]byte(rest[:n])); err != nil {
					t.Fatalf("in pieces of %d: %v", size, err)
				}
				rest = rest[n:]
			}
			if len(b.open) > 0 || b.bulk > 0 || b.line > 0 || b.bytes > 0 {
				t.Fatalf("in pieces of %d it ends with %+v", size, b)
			}
		}
	}
}

// TestHostileServers: what announces or sends without end, in place of a Redis, is refused in one line, and takes no
// memory.
func TestHostileServers(t *testing.T) {
	testenv.Sequential(t)
	for name, answer := range map[string]string{
		"a map":         "%1000000000\r\n",
		"a list":        "*1000000000\r\n",
		"a text":        "$1000000000000\r\n",
		"a line":        "+" + strings.Repeat("x", 1<<20),
		"lists":         strings.Repeat("*1\r\n", 1<<20),
		"many lists":    strings.Repeat("*1000000\r\n", 1<<10),
		"an attribute":  "|1000000000\r\n",
		"texts":         "*1000000\r\n" + strings.Repeat("$4194304\r\n"+strings.Repeat("x", 4<<20)+"\r\n", 3),
		"an overflow":   "*99999999999999999999\r\n",
		"a half answer": "%2\r\n+server\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close() //nolint:errcheck // the test is over
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go hostile(conn, answer)
				}
			}()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			store, err := Open(t.Context(), "redis://"+listener.Addr().String(), stores.Options{})
			if err == nil {
				_ = store.Close()
				t.Fatal("it is taken for a Redis")
			}
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
				t.Errorf("%d MB were allocated: %v", took, err)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Errorf("%.2000q is no line", err)
			}
		})
	}
}

// hostile answers whatever comes.
func hostile(conn net.Conn, answer string) {
	defer conn.Close() //nolint:errcheck // nobody minds
	data := make([]byte, 4096)
	for {
		if _, err := conn.Read(data); err != nil {
			return
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}
