package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/trouble"
)

var started = clock.Nano()

func now() int64 { return clock.Nano() - started + 1 }

// line is a link of a server that answers each line with the same, and counts them.
type line struct {
	*Link
	net.Conn
	reader *bufio.Reader
	seen   *atomic.Int64
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
	l := NewLink(trouble.MustParse(texts...), time.Second, now, seed.Rand(1, seed.Conditions))
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
	got, err := l.reader.ReadBytes('\n')
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
		started = clock.Nano() - int64(7*time.Second) // when the run begins
		f(t)
	})
}

func TestLatency(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:latency=20ms@0-0.5", "redis:latency=3ms")
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
		time.Sleep(time.Second)
		if took, err := l.ask(t, 5); err != nil || took != 3*time.Millisecond {
			t.Errorf("in a run that takes longer: %v, %v", took, err)
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
			sum = sum + took
			least = min(least, took)
			most = max(most, took)
		}
		if mean := sum / 300; mean < 9500*time.Microsecond || mean > 10500*time.Microsecond ||
			most-least < 9*time.Millisecond {
			t.Errorf("mean %v, from %v to %v", mean, least, most)
		}
	})
}

// TestBandwidth: there and back are bounded each, and what is sent meanwhile waits for its turn.
func TestBandwidth(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:bandwidth=10kB")
		begun := now()
		line := append(make([]byte, 999), '\n')
		for range 2 {
			if _, err := l.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []time.Duration{200 * time.Millisecond, 300 * time.Millisecond} {
			if _, err := l.reader.ReadBytes('\n'); err != nil || now()-begun != int64(want) {
				t.Errorf("answer %d comes after %v, %v, want %v", i, time.Duration(now()-begun), err, want)
			}
		}
	})
}

func TestCut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := open(t, "redis:cut@0.2-0.5")
		if took, err := l.ask(t, 5); err != nil || took != 0 {
			t.Fatalf("before: %v, %v", took, err)
		}
		time.Sleep(300 * time.Millisecond)
		_ = l.SetDeadline(clock.Wall{}.Now().Add(50 * time.Millisecond))
		if _, err := l.ask(t, 5); !errors.Is(err, os.ErrDeadlineExceeded) || l.seen.Load() != 1 {
			t.Fatalf("%v, and the store has seen %d", err, l.seen.Load())
		}
		_ = l.SetDeadline(time.Time{})
		if _, err := l.reader.ReadBytes('\n'); err != nil || now()-l.begun.Load() != int64(time.Second/2) {
			t.Errorf("%v at %v", err, time.Duration(now()-l.begun.Load()))
		}
	})
}

// TestCutEnds: a cut until 1 ends with the duration, or with the run if that is earlier.
func TestCutEnds(t *testing.T) {
	for _, want := range []time.Duration{time.Second, time.Second / 4} {
		virtual(t, func(t *testing.T) {
			l := open(t, "redis:cut")
			if want < time.Second {
				time.AfterFunc(want, l.End)
			}
			if took, err := l.ask(t, 5); err != nil || took != want {
				t.Errorf("%v, %v, want %v", took, err, want)
			}
		})
	}
}

// TestOutsideTheRun: nothing is wrong before it and after it.
func TestOutsideTheRun(t *testing.T) {
	for _, late := range []string{"cut", "latency=1s"} {
		l := NewLink(trouble.MustParse("redis:loss=1,reply-loss=1,"+late), 0,
			func() int64 { return 1 }, seed.Rand(1, seed.Conditions))
		for step, want := range []bool{false, true, false} {
			if request, _ := l.loses(); request != want || (l.due(back, 9) > 1) != want {
				t.Errorf("step %d: a request is lost: %t, an answer is due at %d", step, request, l.due(back, 9))
			}
			if step == 0 {
				l.Begin()
			} else if !l.over() {
				l.End()
			}
		}
	}
}

// TestLateEffect: what a client has given up during a cut reaches the store when that ends, but not after the run.
func TestLateEffect(t *testing.T) {
	for _, end := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			l := open(t, "redis:cut@0-0.5")
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
		"redis:loss=1 redis:loss=0":      {0, 1, 0},
		"redis:reply-loss=1 redis:cut":   {1, 0, 1},
		"redis:loss=1@0.5-1":             {1, 0, 0},
		"redis:reply-loss=1,latency=9ms": {1, 0, 1},
	} {
		virtual(t, func(t *testing.T) {
			l := open(t, strings.Fields(text)...)
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
	all := trouble.MustParse("redis:loss=0.1,reply-loss=0.2")
	l := NewLink(all, time.Second, now, seed.Rand(1, seed.Conditions))
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
		l := NewLink(trouble.MustParse("redis:latency=5ms"), time.Second, now, seed.Rand(1, seed.Conditions))
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
	if NewLink(nil, time.Second, now, seed.Rand(1, seed.Conditions)) != nil {
		t.Error("a link that nothing is wrong with")
	}
}

// TestSleep: the wait in the system ends neither early nor a millisecond late on a quiet machine; the shortest of many
// is looked at, so that a busy one changes nothing.
func TestSleep(t *testing.T) {
	l := NewLink(trouble.MustParse("redis:latency=1ms"), time.Second, now, seed.Rand(1, seed.Conditions))
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
	for i := 0; len(precise) > 0; i++ { // what ends late elsewhere
		if i == 1000 {
			t.Fatalf("%d waits go on", len(precise))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if least > 1800*time.Microsecond {
		t.Errorf("at least %v", least)
	}
}
