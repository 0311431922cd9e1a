package network

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
)

// relayed is a connection over a relay to a server that answers each line with the same, and tells of it.
func relayed(t *testing.T, latency time.Duration) (*Relay, net.Conn, <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	seen := make(chan string, 10)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		for r := bufio.NewReader(c); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				_ = c.Close()
				return
			}
			_, _ = c.Write([]byte(line))
			seen <- line
		}
	}()
	link := Slow(latency, now, seed.Rand(1, seed.Conditions))
	link.Begin()
	r, err := NewRelay(l.Addr().String(), link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	c, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	return r, c, seen
}

// TestRelay: what comes back is late, and is lost if the relay ends before.
func TestRelay(t *testing.T) {
	const latency = 30 * time.Millisecond
	begun := clock.Nano()
	_, c, _ := relayed(t, latency)
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "one\n" || err != nil ||
		clock.Nano()-begun < int64(latency) {
		t.Errorf("%q, %v after %v", line, err, time.Duration(clock.Nano()-begun))
	}
	r, c, seen := relayed(t, 300*time.Millisecond)
	<-seen
	arrived := clock.Nano()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	inTime := clock.Nano()-arrived < int64(100*time.Millisecond)
	if n, err := c.Read(make([]byte, 10)); err == nil && inTime {
		t.Errorf("%d bytes that were on their way have arrived", n)
	}
	if c, err := net.Dial("tcp", r.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the relay takes connections after its end")
	}
}

// TestRelayEnds: the end of one side is that of the other one, and so it is if there is no other one.
func TestRelayEnds(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		link := Slow(0, now, seed.Rand(1, seed.Conditions))
		r, err := NewRelay(l.Addr().String(), link)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		if !accepts {
			_ = l.Close()
		}
		c, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if accepts {
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = far.Close()
			_ = l.Close()
		}
		_ = c.SetReadDeadline(clock.Wall{}.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accepts %t: %d bytes, %v", accepts, n, err)
		}
	}
}
