//go:build linux

package e2e

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestStoreKilledAmidARun: the command says in one line that the store failed and when,
// blames no strategy, and exits with the code that the table of faults in
// full/storefaults/README.md names.
func TestStoreKilledAmidARun(t *testing.T) {
	storetest.Redis(t) // skips if there is none
	victim, err := redis.Open(t.Context(), "process", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Close() }() // which says that it has ended
	o := victim.Admin().Options()
	addr, killed := killedAt(t, o.Addr, 100, func() error { return syscall.Kill(victim.PID(), syscall.SIGKILL) })
	at := (&url.URL{Scheme: "redis", User: url.UserPassword("", o.Password), Host: addr}).String()
	var stdout, stderr bytes.Buffer
	code := cli.Main([]string{"run", "incr-expire", "--redis", at, "--rounds", "1", "--loop", "closed", "--requests",
		"200", "--workers", "4", "--out", filepath.Join(t.TempDir(), "out")}, &stdout, &stderr)
	all := stdout.String() + stderr.String()
	select {
	case err := <-killed:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("the run ended before the request at which Redis is killed: exit %d: %s", code, all)
	}
	last := stderr.String()[strings.LastIndex(strings.TrimSpace(stderr.String()), "\n")+1:]
	if code != exit.Failed || !strings.Contains(last, "the correctness figures are invalid: store-failed: ") {
		t.Errorf("exit %d: %s", code, all)
	}
	if strings.Contains(all, "broke its declared guarantee") {
		t.Errorf("the strategy is blamed: %s", all)
	}
}

// killedAt is the address of a proxy of the Redis at addr, which it kills when the n-th
// INCR of the measured pass arrives. All connections are refused from then on.
func killedAt(t *testing.T, addr string, n int64, kill func() error) (proxy string, killed <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var inPass atomic.Bool // the first look at the mark comes when the warm-up is over
	var requests atomic.Int64
	var once sync.Once
	done := make(chan error, 1)
	forward := func(client net.Conn) {
		defer func() { _ = client.Close() }()
		server, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		go func() {
			_, _ = io.Copy(client, server)
			_ = client.Close() // the server has ended
		}()
		buffer := make([]byte, 1<<16)
		for {
			size, err := client.Read(buffer)
			if err != nil {
				return
			}
			sent := buffer[:size]
			if bytes.Contains(bytes.ToLower(sent), []byte("keepttl")) {
				inPass.Store(true)
			}
			if inPass.Load() && requests.Add(int64(bytes.Count(bytes.ToUpper(sent), []byte("\r\nINCR\r\n")))) >= n {
				once.Do(func() {
					_ = l.Close()
					done <- kill()
				})
				return
			}
			if _, err := server.Write(sent); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go forward(client)
		}
	}()
	return l.Addr().String(), done
}
