package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/seed"
)

var started = clock.Nano()

func now() int64 { return clock.Nano() - started + 1 }

// line is a link of a server that answers each line with the same, and counts them.
type line struct {
	*Link
	net.Conn
	r    *bufio.Reader
	seen *atomic.Int64
}

// open connects a client over the conditions of a run that lasts a second.
func open(t *testing.T, texts ...string) *line {
	near, far := net.Pipe()
	seen := new(atomic.Int64)
	go func() {
		for r := bufio.NewReader(far); ; {
			b, err := r.ReadBytes('\n')
			if err != nil {
				_ = far.Close()
				return
			}
			seen.Add(1)
			go func() { _, _ = far.Write(b) }()
		}
	}()
	l := NewLink(Plan(texts), func(Condition) bool { return true }, time.Second, now, seed.Rand(1, seed.Conditions))
	l.Begin()
	c := l.Wrap(near)
	t.Cleanup(func() {
		_ = c.Close()
		time.Sleep(2 * time.Second) // what is on its way arrives
	})
	return &line{l, c, bufio.NewReader(c), seen}
}

// ask asks once, and returns how long the answer took.
func (l *line) ask(t *testing.T, n int) (time.Duration, error) {
	t.Helper()
	begun := clock.Nano()
	b := make([]byte, n)
	b[n-1] = '\n'
	if _, err := l.Write(b); err != nil {
		return 0, err
	}
	got, err := l.r.ReadBytes('\n')
	if err == nil && len(got) != n {
		t.Fatalf("%d bytes became %d", n, len(got))
	}
	return time.Duration(clock.Nano() - begun), err
}

// virtual runs f in virtual time: what is planted is then exact.
func virtual(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		real := sleep
		sleep = func(left int64) { time.Sleep(time.Duration(left)) }
		defer func() { sleep = real }()
		started = clock.Nano()
		f(t)
	})
}

func TestLatency(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:0-0.5:latency=20ms", "redis:latency=3ms")
		want := 2 * 23 * time.Millisecond // the connection is opened for the first
		for i := range 10 {
			if took, err := l.ask(t, 5); err != nil || took != want {
				t.Fatalf("request %d took %v, %v, and not %v", i, took, err, want)
			}
			want = 23 * time.Millisecond
		}
		time.Sleep(time.Second / 2)
		if took, err := l.ask(t, 5); err != nil || took != 3*time.Millisecond {
			t.Errorf("after half of the run: %v, %v", took, err)
		}
		l.End()
		if took, err := l.ask(t, 5); err != nil || took != 0 {
			t.Errorf("after the run: %v, %v", took, err)
		}
	})
}

func TestJitter(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:latency=10ms,jitter=5ms")
		_, _ = l.ask(t, 1)
		var sum, least, most time.Duration = 0, time.Hour, 0
		for range 300 {
			took, err := l.ask(t, 1)
			if err != nil || took < 5*time.Millisecond || took > 15*time.Millisecond {
				t.Fatalf("%v, %v", took, err)
			}
			sum, least, most = sum+took, min(least, took), max(most, took)
		}
		if mean := sum / 300; mean < 9500*time.Microsecond || mean > 10500*time.Microsecond || most-least < 9*time.Millisecond {
			t.Errorf("mean %v, from %v to %v", mean, least, most)
		}
	})
}

func TestBandwidth(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:bandwidth=10kB")
		if took, err := l.ask(t, 1000); err != nil || took != 200*time.Millisecond { // there and back
			t.Errorf("%v, %v", took, err)
		}
	})
}

func TestCut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:0.2-0.5:cut")
		if took, err := l.ask(t, 5); err != nil || took != 0 {
			t.Fatalf("before: %v, %v", took, err)
		}
		time.Sleep(300 * time.Millisecond)
		_ = l.SetDeadline(clock.Wall{}.Now().Add(50 * time.Millisecond))
		if _, err := l.ask(t, 5); !errors.Is(err, os.ErrDeadlineExceeded) || l.seen.Load() != 1 {
			t.Fatalf("%v, and the store has seen %d", err, l.seen.Load())
		}
		_ = l.SetDeadline(time.Time{})
		if _, err := l.r.ReadBytes('\n'); err != nil || now() < int64(time.Second/2) {
			t.Errorf("%v at %v", err, time.Duration(now()))
		}
	})
}

// TestLateEffect: what a client has given up during a cut reaches the store when that ends, but not after the run.
func TestLateEffect(t *testing.T) {
	for _, end := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			l := open(t, "redis:0-0.5:cut")
			_, _ = l.Write([]byte("x\n"))
			_ = l.Close()
			if end {
				time.Sleep(100 * time.Millisecond)
				l.End()
			}
			time.Sleep(time.Second)
			if n := l.seen.Load(); n != map[bool]int64{false: 1, true: 0}[end] {
				t.Errorf("ended %t: the store has seen %d requests", end, n)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	for text, want := range map[string]struct{ seen, lost, replies int64 }{
		"redis:loss=1":                   {0, 1, 0},
		"redis:reply-loss=1":             {1, 0, 1},
		"redis:loss=1,reply-loss=1":      {0, 1, 0},
		"redis:0.5-1:loss=1":             {1, 0, 0},
		"redis:reply-loss=1,latency=9ms": {1, 0, 1},
	} {
		virtual(t, func(t *testing.T) {
			l := open(t, text)
			_, err := l.ask(t, 5)
			if lost := want.lost+want.replies > 0; errors.Is(err, syscall.ECONNRESET) != lost {
				t.Errorf("%s: %v", text, err)
			}
			if l.seen.Load() != want.seen || l.Lost.Load() != want.lost || l.LostReplies.Load() != want.replies {
				t.Errorf("%s: seen %d, lost %d and %d", text, l.seen.Load(), l.Lost.Load(), l.LostReplies.Load())
			}
		})
	}
}

// TestLossRate: shares of the requests, each on a connection of its own.
func TestLossRate(t *testing.T) {
	all := Plan([]string{"redis:loss=0.1,reply-loss=0.2"})
	l := NewLink(all, func(Condition) bool { return true }, time.Second, now, seed.Rand(1, seed.Conditions))
	l.Begin()
	var lost, replies int
	for range 10_000 {
		a, b := l.loses()
		if a {
			lost++
		}
		if b {
			replies++
		}
	}
	if lost < 900 || lost > 1100 || replies < 1650 || replies > 1950 { // of what has arrived
		t.Errorf("%d and %d", lost, replies)
	}
}

// TestCommandsAlone: what makes a connection ready is no request.
func TestCommandsAlone(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:loss=1")
		l.Conn.(*conn).Commands(0)
		if _, err := l.ask(t, 5); err != nil {
			t.Error(err)
		}
		l.Conn.(*conn).Commands(1)
		if _, err := l.ask(t, 5); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}

func TestCloses(t *testing.T) {
	virtual(t, func(t *testing.T) {
		near, far := net.Pipe()
		l := NewLink(Plan([]string{"redis:latency=5ms"}), func(Condition) bool { return true }, time.Second, now, seed.Rand(1, seed.Conditions))
		c := l.Wrap(near)
		_ = far.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Error("the store has closed:", err)
		}
		_ = c.Close()
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Error("the client has closed:", err)
		}
		time.Sleep(time.Second)
	})
	if NewLink(Plan([]string{"redis:cut"}), func(Condition) bool { return false }, time.Second, now, seed.Rand(1, seed.Conditions)) != nil {
		t.Error("a link that nothing is wrong with")
	}
}

// TestSleep: the wait in the system ends neither early nor a millisecond late on a quiet machine; the shortest of many
// is looked at, so that a busy one changes nothing.
func TestSleep(t *testing.T) {
	l := NewLink(Plan([]string{"redis:latency=1ms"}), func(Condition) bool { return true }, time.Second, now, seed.Rand(1, seed.Conditions))
	least := time.Hour
	for range 20 {
		begun := now()
		l.wait(begun + int64(time.Millisecond))
		took := time.Duration(now() - begun)
		if took < time.Millisecond {
			t.Fatalf("%v", took)
		}
		least = min(least, took)
	}
	if least > 1800*time.Microsecond {
		t.Errorf("at least %v", least)
	}
}
