package natslink_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/full/internal/natslink"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/coordinate"
	_ "github.com/quotabench/quotabench/internal/testenv"
)

// begin starts a coordinator with a server of NATS in this process.
func begin(t *testing.T, p coordinate.Plan) (join string, l net.Listener, ended chan error) {
	t.Helper()
	l, join, err := coordinate.Listen(t.Context(), "127.0.0.1:0", "secret")
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- coordinate.NewCoordinator(p).Run(t.Context(), l) }()
	return join, l, ended
}

func hello(index, of int) coordinate.Hello {
	return coordinate.Hello{Index: index, Of: of, Fingerprint: "f00d", Place: "here"}
}

// TestRun: a run by NATS has the same start for all, and its files come whole.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	big := bytes.Repeat([]byte("history "), 200_000)
	if err := os.WriteFile(filepath.Join(dir, "h"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	kept := map[int]*buffer{}
	join, _, ended := begin(t, coordinate.Plan{Generators: 2, Fingerprint: "f00d", Wait: time.Minute,
		Welcome: coordinate.Welcome{RunID: "run1", Collect: true},
		Keep: func(index int, _ string) (io.WriteCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			kept[index] = new(buffer)
			return kept[index], nil
		}})
	var all sync.WaitGroup
	var at [2]time.Time
	for i := range at {
		all.Go(func() {
			m, err := coordinate.Join(t.Context(), join, hello(i+1, 2), time.Minute, clock.Wall{}.Now)
			if err != nil {
				t.Error(err)
				return
			}
			if at[i], err = m.Meet(m.Context(), "start"); err != nil || m.RunID != "run1" {
				t.Error(m.RunID, err)
			}
			if err := errors.Join(m.SendFiles(dir, "h"), m.Done(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := <-ended; err != nil || at[0].IsZero() || !at[0].Equal(at[1]) {
		t.Errorf("starts at %v, %v", at, err)
	}
	for i := 1; i <= 2; i++ {
		if kept[i] == nil || !bytes.Equal(kept[i].Bytes(), big) {
			t.Errorf("the file of generator %d did not come whole", i)
		}
	}
}

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// TestToken: who has not the token does not join.
func TestToken(t *testing.T) {
	join, l, _ := begin(t, coordinate.Plan{Generators: 1, Fingerprint: "f00d", Wait: time.Minute})
	defer l.Close() //nolint:errcheck // of a test
	_, err := coordinate.Join(t.Context(), strings.Replace(join, "secret", "guess", 1), hello(1, 1), time.Second, clock.Wall{}.Now)
	if err == nil || !strings.Contains(err.Error(), "Authorization") || strings.Contains(err.Error(), "guess") {
		t.Error(err)
	}
}

// TestServerGone: generators and coordinator end if the server does.
func TestServerGone(t *testing.T) {
	join, l, ended := begin(t, coordinate.Plan{Generators: 1, Fingerprint: "f00d", Wait: time.Minute})
	m, err := coordinate.Join(t.Context(), join, hello(1, 1), time.Minute, clock.Wall{}.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // with the server
		t.Fatal(err)
	}
	<-m.Context().Done()
	if err := context.Cause(m.Context()); !strings.Contains(err.Error(), "the coordinator is lost") {
		t.Error(err)
	}
	_ = m.Done(nil) // nobody hears it
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "is lost") {
		t.Error(err)
	}
}

// TestThousand: 1,000 generators, each with a connection of its own, hear of the start before it.
func TestThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("1,000 connections take seconds of the processor")
	}
	const n = 1_000
	join, _, ended := begin(t, coordinate.Plan{Generators: n, Fingerprint: "f00d", Wait: 5 * time.Minute})
	var all, awake sync.WaitGroup
	var late atomic.Int64
	awake.Add(n)
	begun := make([]time.Duration, n) // after the instant that all have agreed on
	from := clock.Wall{}.Now()
	for i := range n {
		all.Go(func() {
			begins := sync.OnceFunc(awake.Done)
			defer begins()
			m, err := coordinate.Join(t.Context(), join, hello(i+1, n), 5*time.Minute, clock.Wall{}.Now)
			if err != nil {
				t.Error(err)
				return
			}
			at, err := m.Meet(m.Context(), "start")
			heard := clock.Wall{}.Now()
			if err != nil {
				t.Error(err)
				return
			}
			_ = clock.Wall{}.Sleep(m.Context(), at.Sub(heard))
			begun[i] = clock.Wall{}.Now().Sub(at)
			begins()
			awake.Wait() // what follows is not to keep others from beginning
			if heard.After(at) {
				late.Add(1)
			}
			if err := m.Done(nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	slices.Sort(begun)
	t.Logf("%d generators: %v in all; half began %v after the instant, 99 %% %v, the last %v, within %v of the first; %d heard of it too late",
		n, clock.Wall{}.Now().Sub(from), begun[n/2], begun[n*99/100], begun[n-1], begun[n-1]-begun[0], late.Load())
	if begun[0] < 0 {
		t.Errorf("one began %v before the instant", -begun[0])
	}
}
