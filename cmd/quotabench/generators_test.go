//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/seed"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// launched is this test binary as the program.
type launched struct {
	*exec.Cmd
	said  strings.Builder // to be read once it has ended
	ended chan struct{}
}

func launch(t *testing.T, coordinator string, args ...string) *launched {
	t.Helper()
	p := &launched{Cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	p.Env = append(os.Environ(), asCommand+"=1", coordinate.Variable+"="+coordinator)
	p.Stdout, p.Stderr = io.Discard, &p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // what it said tells
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	return p
}

// cutting leads connections to an address over a network that can be cut.
func cutting(t *testing.T, to string) (at string, link *network.Link) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	link = network.NewLink(network.Plan([]string{"coordinator:cut"}), func(network.Condition) bool { return true }, 0, clock.Nano, seed.Rand(1, seed.Conditions))
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			for err != nil { // it is not there yet
				if (clock.Wall{}).Sleep(t.Context(), 50*time.Millisecond) != nil {
					return
				}
				far, err = net.Dial("tcp", to)
			}
			far = link.Wrap(far)
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			both.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	}()
	return l.Addr().String(), link
}

// TestGeneratorsLeaveNoKeys: however a run of two generators ends, each process says why, and nothing of it is left in a Redis of
// others.
func TestGeneratorsLeaveNoKeys(t *testing.T) {
	testenv.Long(t) // three processes seven times, some of which are silent for ten seconds
	const lost = "the coordinator is lost"
	for name, x := range map[string]struct {
		do                        func(coordinator, second *launched, link *network.Link)
		coordinator, first, other string // what they say
	}{
		"nothing":          {func(_, _ *launched, _ *network.Link) {}, "of 2 generators: leak: certain 0", "", ""},
		"killed":           {func(_, g *launched, _ *network.Link) { _ = g.Process.Kill() }, "its process or its connection has ended", "is lost", ""},
		"paused":           {func(_, g *launched, _ *network.Link) { _ = g.Process.Signal(syscall.SIGSTOP) }, "nothing came from it for", "is lost", lost},
		"cut off":          {func(_, _ *launched, l *network.Link) { l.Begin() }, "nothing came from it for", "is lost", lost},
		"one interrupted":  {func(_, g *launched, _ *network.Link) { _ = g.Process.Signal(syscall.SIGTERM) }, " failed: it was interrupted", "", "interrupted"},
		"interrupted":      {func(c, _ *launched, _ *network.Link) { _ = c.Process.Signal(os.Interrupt) }, "interrupted", "", ""},
		"lost coordinator": {func(c, _ *launched, _ *network.Link) { _ = c.Process.Kill() }, "", lost, lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := redis.Open(t.Context(), "process", stores.Options{})
			if err != nil {
				t.Skip(err)
			}
			c := r.Client(redis.ClientOptions{})
			t.Cleanup(func() { _, _ = c.Close(), r.Close() })
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			at := free.Addr().String()
			_ = free.Close() // which is the coordinator's now
			proxy, link := cutting(t, at)
			dir := t.TempDir()
			run := func(out string, more ...string) []string {
				return append([]string{"run", "incr-expire-atomic", "--limit", "10", "--rate", "200", "--duration", "2s", "--rounds", "1", "--quiet",
					"--redis", r.URL(), "--out", filepath.Join(dir, out)}, more...)
			}
			coordinator := launch(t, "", append([]string{"coordinate", "--generators", "2", "--at", at, "--token", "secret"}, run("all")...)...)
			first := launch(t, "tcp://secret@"+at, run("first", "--generator", "1/2")...)
			second := launch(t, "tcp://secret@"+proxy, run("second", "--generator", "2/2")...)
			keys := func() []string { return c.Keys(t.Context(), "quotabench:*").Val() }
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for len(keys()) < 8 { // it counts
				if (clock.Wall{}).Sleep(ctx, 10*time.Millisecond) != nil {
					said := ""
					for _, p := range []*launched{coordinator, first, second} {
						_ = p.Process.Kill()
						<-p.ended
						said += p.said.String()
					}
					t.Fatal("nothing was counted: ", said)
				}
			}
			x.do(coordinator, second, link)
			ends := func(p *launched, want string) {
				t.Helper()
				select {
				case <-p.ended:
				case <-ctx.Done():
					t.Fatalf("%v does not end", p.Args[1:3])
				}
				if !strings.Contains(p.said.String(), want) {
					t.Errorf("%v should say %q: %s", p.Args[1:3], want, p.said.String())
				}
			}
			ends(coordinator, x.coordinator)
			ends(first, x.first)
			_ = second.Process.Signal(syscall.SIGCONT) // one that was paused goes on after the run
			ends(second, x.other)
			link.End()
			if left := keys(); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestGeneratorsNeedAStore: a control that counts in one process is refused before anything is measured.
func TestGeneratorsNeedAStore(t *testing.T) {
	p := launch(t, "", "run", "exact", "--generators", "2", "--redis", "embedded", "--out", filepath.Join(t.TempDir(), "out"))
	<-p.ended
	if said := p.said.String(); p.ProcessState.ExitCode() != 2 || !strings.Contains(said, "strategy exact: it is one lock in one process") {
		t.Errorf("exit %d: %s", p.ProcessState.ExitCode(), said)
	}
}
