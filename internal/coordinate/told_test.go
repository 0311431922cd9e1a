package coordinate_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/coordinate"
)

// caller is a generator that makes its calls itself. It has joined.
func caller(t *testing.T, conn net.Conn, h coordinate.Hello) *rpc.Client {
	t.Helper()
	to := jsonrpc.NewClient(conn)
	if err := to.Call("Door.Join", h, new(coordinate.Welcome)); err != nil {
		t.Error(err)
	}
	return to
}

// TestStates: what generators do is told as they say it, until they have ended.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newPipes(), coordinate.NewCoordinator(plan)
		over := make(chan error, 1)
		go func() { over <- c.Run(t.Context(), l) }()
		are := func(want string, least float64) {
			t.Helper()
			synctest.Wait()
			if text, share := coordinate.Summary(c.States()); text != want || share != least {
				t.Errorf("the states are %q, %g, want %q, %g", text, share, want, least)
			}
		}
		are("3 generators: has not joined", 0)
		first, err := coordinate.Attend(t.Context(), l.dial(), hello(1), wall)
		if err != nil {
			t.Fatal(err)
		}
		second := caller(t, l.dial(), hello(2))
		are("2 generators: waits for the others; 1: has not joined", 0)
		third := caller(t, l.dial(), hello(3))
		call := func(to *rpc.Client, method string, args any) error { return to.Call("Run."+method, args, new(bool)) }
		first.Tell("round 1", 0.5)
		if err := errors.Join(call(second, "Tell", coordinate.State{Text: "round 1", Share: 0.25}), call(third, "Done", "")); err != nil {
			t.Error(err)
		}
		are("2 generators: round 1; 1: done", 0.25)
		if err := call(third, "Tell", coordinate.State{Text: "round 2"}); err != nil {
			t.Error(err)
		}
		if err := third.Call("Run.Stopped", 0, new(string)); err == nil || err.Error() != "it has ended" {
			t.Errorf("who has ended is told %v", err)
		}
		if err := first.Done(nil); err != nil || !errors.Is(context.Cause(first.Context()), context.Canceled) {
			t.Errorf("%v; who has ended is told %v", err, context.Cause(first.Context()))
		}
		are("2 generators: done; 1: round 1", 0.25)
		_ = errors.Join(second.Close(), third.Close())
		are("2 generators: done; 1: lost", 0.25)
		if err := <-over; err == nil || err.Error() != "generator 2 of 3 (here) is lost: its process or its connection has ended" {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestOneEndsBeforeOthersJoin: a run is not over when the only one that has joined has ended, and who comes then is told.
func TestOneEndsBeforeOthersJoin(t *testing.T) {
	_, err := coordinated(t, plan, func(l *pipes, _ func()) {
		if err := generator(l.dial(), hello(3), wall); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		_ = generator(l.dial(), hello(1), wall, "start 1")
	})
	if err == nil || err.Error() != "generator 3 (here) has ended, and others wait for it at start 1" {
		t.Errorf("it ended with %v", err)
	}
}

// TestGone: the end of a process counts until its generator has joined.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newPipes(), coordinate.NewCoordinator(plan)
		go func() { _ = generator(l.dial(), hello(1), wall, "start 1") }()
		time.AfterFunc(time.Second, func() { c.Gone(1, "its output has been closed") })
		time.AfterFunc(2*time.Second, func() { c.Gone(2, "no such file") })
		if err := c.Run(t.Context(), l); err == nil || err.Error() != "generator 2 of 3 has ended: no such file" {
			t.Errorf("it ended with %v", err)
		}
	})
}

// unreachable is a listener that fails.
type unreachable struct{ *pipes }

func (unreachable) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

// TestUnreachable: a coordinator to which nobody can come ends at once.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := coordinate.NewCoordinator(plan).Run(t.Context(), unreachable{newPipes()})
		if err == nil || err.Error() != "the coordinator cannot be reached any longer: too many open files" {
			t.Errorf("it ended with %v", err)
		}
	})
}

// full is a file that takes nothing.
type full struct{ *buffer }

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestFilesThatAreNotKept: the run ends with the reason, which its generator is told.
func TestFilesThatAreNotKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "h"), []byte("history"), 0o600); err != nil {
		t.Fatal(err)
	}
	var taken buffer
	for want, keep := range map[string]func(int, string) (io.WriteCloser, error){
		"it sends a file, which nobody asked for": nil,
		"no directory": func(int, string) (io.WriteCloser, error) { return nil, errors.New("no directory") },
		"no space":     func(int, string) (io.WriteCloser, error) { return full{&taken}, nil },
	} {
		p, h := plan, hello(1)
		p.Generators, h.Of, p.Keep = 1, 1, keep
		var told error
		_, err := coordinated(t, p, func(l *pipes, _ func()) {
			m, err := coordinate.Attend(context.Background(), l.dial(), h, wall)
			if err != nil {
				t.Error(err)
				return
			}
			told = m.SendFiles(dir, "h")
			_ = clock.Wall{}.Sleep(m.Context(), time.Minute)
			_ = m.Done(told)
		})
		if all := "the files of generator 1 (here) could not be kept: " + want; err == nil || err.Error() != all || told == nil ||
			told.Error() != want && told.Error() != all {
			t.Errorf("it ended with %v, and the generator was told %v; want %s", err, told, want)
		}
	}
	if !taken.closed {
		t.Error("a file that is full stays open")
	}
}

// TestFilesOfStoppedRun: the file of a generator that is lost is closed, and those of others still come.
func TestFilesOfStoppedRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "h"), []byte("history"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := plan
	p.Generators = 2
	var kept [2]buffer
	p.Keep = func(index int, _ string) (io.WriteCloser, error) { return &kept[index-1], nil }
	_, err := coordinated(t, p, func(l *pipes, _ func()) {
		one, two := hello(1), hello(2)
		one.Of, two.Of = 2, 2
		lost := caller(t, l.dial(), one)
		m, err := coordinate.Attend(context.Background(), l.dial(), two, wall)
		if err == nil {
			err = lost.Call("Run.File", coordinate.Part{Name: "h", Data: []byte("hist")}, new(bool))
		}
		if err != nil {
			t.Error(err)
			return
		}
		if kept[0].closed {
			t.Error("a file is closed before its last part has come")
		}
		_ = lost.Close()
		<-m.Context().Done()
		if err := errors.Join(m.SendFiles(dir, "h"), m.Done(nil)); err != nil {
			t.Error(err)
		}
	})
	if err == nil || err.Error() != "generator 1 of 2 (here) is lost: its process or its connection has ended" {
		t.Errorf("it ended with %v", err)
	}
	if !kept[0].closed || kept[0].String() != "hist" || !kept[1].closed || kept[1].String() != "history" {
		t.Errorf("kept %+v", &kept)
	}
}

// fitful is a connection by which the coordinator's time comes late, except when it is asked for often.
type fitful struct {
	net.Conn
	asked []time.Time
	late  atomic.Bool
}

func (f *fitful) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"Run.Time"`)) {
		now := wall()
		f.asked = append(slices.DeleteFunc(f.asked, func(at time.Time) bool { return now.Sub(at) > time.Second }), now)
		f.late.Store(len(f.asked) < 8)
	}
	return f.Conn.Write(b)
}

func (f *fitful) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.late.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	return n, err
}

// TestFastestAnswerCounts: the clock is read often when a generator joins and at each step, so that slow answers between them do not
// count.
func TestFastestAnswerCounts(t *testing.T) {
	p, h := plan, hello(1)
	p.Generators, h.Of = 1, 1
	_, err := coordinated(t, p, func(l *pipes, _ func()) {
		m, err := coordinate.Attend(context.Background(), &fitful{Conn: l.dial()}, h, wall)
		if err != nil {
			t.Error(err)
			return
		}
		for range 5 {
			time.Sleep(8 * time.Second)
			if _, err := m.Meet(m.Context(), "end"); err != nil {
				t.Error(err)
			}
			if b := m.Bound(); b.ErrorNS > int64(2*time.Millisecond) {
				t.Errorf("the clock is known to %v", time.Duration(b.ErrorNS))
			}
		}
		if err := m.Done(nil); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
