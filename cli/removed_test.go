//go:build unix

package cli

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	redisstore "github.com/quotabench/quotabench/stores/redis"
)

// TestSignals: each of them ends the context, and a terminal that hangs up twice does
// not end the process before it has tidied up.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		came := make(chan os.Signal, 2) // a signal that came too late for stop would end the test
		signal.Notify(came, sig)
		r, w := io.Pipe()
		ctx, stop := withSignals(t.Context(), w)
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		<-came
		<-ctx.Done()
		b := make([]byte, 100)
		if n, err := r.Read(b); err != nil || !strings.Contains(string(b[:n]), "stopping: ") {
			t.Errorf("%v: %q, %v", sig, b[:n], err)
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if sig == syscall.SIGHUP {
			if err := syscall.Kill(os.Getpid(), sig); err != nil {
				t.Fatal(err)
			}
			<-came
		}
		stop()
		signal.Stop(came)
		_ = w.Close()
	}
}

// TestInterruptedWhileReading: files that are read before anything is started may be
// pipes that never end.
func TestInterruptedWhileReading(t *testing.T) {
	for _, args := range [][]string{
		{"run", "honest", "--instances", "1", "--instances", "1", "--redis", "embedded", "--postgres", "embedded", "--trace",
			"pipe"},
		{"run", "honest", "--instances", "1", "--instances", "1", "--config", "pipe"},
		{"sim", "honest", "--trace", "pipe"},
		{"judge", "pipe"},
		{"claims", "pipe"},
		{"explore", "honest", "--config", "pipe"},
	} {
		p := newPlace(t, nil)
		if err := syscall.Mkfifo("pipe", 0o600); err != nil {
			t.Skip(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			// It opens when the command has begun to read.
			w, err := os.OpenFile("pipe", os.O_WRONLY, 0)
			cancel()
			if err == nil {
				defer func() { _ = w.Close() }()
			}
			<-t.Context().Done()
		}()
		o := call(ctx, args...)
		if o.code != exit.Interrupted ||
			o.stderr != "quotabench: interrupted before anything was measured; nothing was written\n" {
			t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
		}
		if now := p.files(); len(now) != 1 {
			t.Errorf("%q left %q", args, now)
		}
	}
}

// TestSimInterruptedInABacklog: requests that come faster than they can be served wait
// by the million, and are not served any more.
func TestSimInterruptedInABacklog(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	taken.Store(0)
	onTake = func(n int64) {
		if n == 1000 {
			cancel()
		}
	}
	defer func() { onTake = nil }()
	o := call(ctx, "sim", "honest", "--workload", "steady:subjects=1000", "--rate", "1e8", "--duration", "1s", "--out",
		"out")
	if o.code != exit.Interrupted {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	if f := readResults(t); len(f.Runs) != 1 || !f.Runs[0].Partial || f.Runs[0].Issued > 100_000 {
		t.Errorf("%d runs, %d requests issued after the signal", len(f.Runs), f.Runs[0].Issued)
	}
}

// TestKeptAfterEachStrategy looks at the record when the second one begins.
func TestKeptAfterEachStrategy(t *testing.T) {
	testenv.Sequential(t)
	for _, args := range [][]string{
		tiny("honest,liar", "--loop", "closed"),
		{"sim", "honest,liar", "--requests", "100", "--parallel", "1", "--out", "out"},
	} {
		newPlace(t, nil)
		var seen []int
		var once sync.Once
		taken.Store(0)
		first := int64(400)
		if args[0] == "sim" {
			first = 100
		}
		onTake = func(n int64) {
			if n > first {
				once.Do(func() {
					f, err := codec.Read(filepath.Join("out", files.ResultsName))
					if err != nil {
						t.Error(err)
					}
					seen = append(seen, len(f.Runs))
					if !f.Interrupted {
						t.Error("the record does not say that it is not complete")
					}
				})
			}
		}
		o := call(t.Context(), args...)
		onTake = nil
		if len(seen) != 1 || seen[0] != 1 || len(readResults(t).Runs) != 2 {
			t.Errorf("%q: %d runs were written when the second strategy began: %s", args[0], seen, o.stderr)
		}
	}
}

// full refuses what is written to it.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestNothingIsLostWhereNothingCanBeWritten: the table is seen if the disk is full,
// and the files are there if standard output is.
func TestNothingIsLostWhereNothingCanBeWritten(t *testing.T) {
	newPlace(t, nil)
	if o := call(t.Context(), tiny("honest")...); o.code != exit.OK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	f := readResults(t)
	b := &render.Bundle{File: &f}
	var table, errs lockedBuffer
	write := func(stdout io.Writer, dir *session.Dir) error {
		cmd := &cobra.Command{}
		cmd.SetOut(stdout)
		x := &session.Session{Settings: group.New(group.Run), Cmd: cmd, Ctx: t.Context(), Stderr: &errs, Dir: dir}
		return x.WriteBundle(b)
	}
	err := write(&table, &session.Dir{Path: "gone"})
	var e *exit.Error
	if !errors.As(err, &e) || e.Code != exit.Failed || !strings.Contains(err.Error(), "report.txt") ||
		!strings.Contains(table.String(), "honest") {
		t.Errorf("%v\n%s", err, table.String())
	}
	if err := os.Mkdir("new", 0o755); err != nil {
		t.Fatal(err)
	}
	out := &session.Dir{Path: "new"}
	if err := write(full{}, out); !errors.As(err, &e) || e.Code != exit.Failed || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{files.ResultsName, "report.txt"} {
		if _, err := os.Stat(filepath.Join("new", name)); err != nil {
			t.Error(err)
		}
	}
	// A file that is not ours stays, and the others are written.
	if err := os.WriteFile("new/mine.svg", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := out.Write("mine.svg", []byte("ours")); err == nil {
		t.Error("another's file was overwritten")
	}
}

// TestAnotherRunsDirectory is refused before anything is measured.
func TestAnotherRunsDirectory(t *testing.T) {
	for name, prepare := range map[string]func() error{
		"another run writes to out": func() error {
			l, err := files.TakeLock(filepath.Join("out", session.LockName))
			t.Cleanup(func() { _ = l.Release() })
			return err
		},
		"already holds report.txt": func() error { return os.WriteFile("out/report.txt", nil, 0o600) },
		"already holds series.csv": func() error { return os.Symlink("../mine", "out/series.csv") },
	} {
		for _, args := range [][]string{
			tiny("honest"),
			{"sim", "honest", "--requests", "100", "--out", "out"},
			{"explore", "honest", "--out", "out"},
		} {
			newPlace(t, nil)
			if err := errors.Join(os.Mkdir("out", 0o755), prepare()); err != nil {
				t.Fatal(err)
			}
			o := call(t.Context(), args...)
			requireUsageError(t, o)
			if !strings.Contains(o.stderr, name) {
				t.Errorf("%s: %s", args[0], o.stderr)
			}
			if _, err := os.Lstat("mine"); err == nil {
				t.Error("a file was made where a link points to")
			}
		}
	}
}

// addressOf is a URL of the tests' Redis, as of a server of a user's.
func addressOf(s *redisstore.Store) string {
	o := s.Admin().Options()
	return (&url.URL{Scheme: "redis", User: url.UserPassword("", o.Password), Host: o.Addr}).String()
}

// TestClean lists what a killed run left, removes it when it is told to, and leaves
// what is not left.
func TestClean(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	server := storetest.Redis(t)
	c := server.Admin()
	ctx := context.Background()
	t.Cleanup(func() { c.FlushAll(ctx) })
	owner := deadOwner(t, c)
	plant := func() {
		for _, err := range []error{
			c.HSet(ctx, "quotabench:holdings", "dead_1", owner).Err(),
			c.Set(ctx, "quotabench:dead_1:a", 1, 0).Err(),
			c.Set(ctx, "quotabench:old_1:a", 1, 0).Err(),
			c.Set(ctx, "users", 1, 0).Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	plant()
	at := addressOf(server)
	has := func(keys ...string) {
		t.Helper()
		for _, k := range []string{"quotabench:dead_1:a", "quotabench:old_1:a", "users"} {
			n, err := c.Exists(ctx, k).Result()
			if want := len(keys) > 0 && strings.Contains(strings.Join(keys, " "), k); err != nil || (n == 1) != want {
				t.Errorf("%s is there: %v, want %v (%v)", k, n == 1, want, err)
			}
		}
	}
	o := call(ctx, "doctor", "--clean", "--redis", at)
	if o.code != exit.OK || !strings.Contains(o.stdout, "quotabench:dead_1:") || !strings.Contains(o.stdout, "unknown") ||
		o.stderr != "nothing was removed: give --yes to remove what is left\n" {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	if strings.Contains(o.stdout+o.stderr, c.Options().Password) {
		t.Error("the password is shown")
	}
	has("quotabench:dead_1:a", "quotabench:old_1:a", "users")
	o = call(ctx, "doctor", "--clean", "--redis", at, "--yes")
	if o.code != exit.OK || !strings.Contains(o.stderr, "removed: 1 key\n") ||
		!strings.Contains(o.stderr, "1 thing without a lease stayed") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	has("quotabench:old_1:a", "users")
	o = call(ctx, "doctor", "--clean", "--redis", at, "--yes", "--unknown")
	if o.code != exit.OK {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	has("users")
	o = call(ctx, "doctor", "--clean", "--redis", at)
	if o.stdout != "runs have left nothing\n" {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	// A run does the same by itself, and says so.
	plant()
	o = call(ctx, "run", "honest", "--instances", "1", "--instances", "1", "--redis", at, "--postgres", "embedded",
		"--requests", "100", "--rounds", "1", "--loop", "closed", "--out", "out")
	if o.code != exit.OK || !strings.Contains(o.stderr,
		"\nredis: removed 1 key that a run left which had ended without doing so (process ") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	has("quotabench:old_1:a", "users")
	requireUsageError(t, call(ctx, "doctor", "--clean", "--redis", "process"))
	requireUsageError(t, call(ctx, "doctor", "--clean", "--unknown"))
	requireUsageError(t, call(ctx, "doctor", "--clean", "--store", "etcd=http://x"))
	for _, flag := range []string{"--yes", "--unknown", "--redis=" + at, "--store=redis.2=" + at} {
		o := call(ctx, "doctor", flag)
		requireUsageError(t, o)
		if !strings.Contains(o.stderr, "it is for --clean") {
			t.Errorf("%s: %s", flag, o.stderr)
		}
	}
}

// deadOwner is the lease of a process of this machine that has ended.
func deadOwner(t *testing.T, c *goredis.Client) string {
	t.Helper()
	s, err := redisstore.FromClient(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	entry, err := c.HGet(t.Context(), "quotabench:holdings", "own").Result()
	err = errors.Join(err, s.Wipe(t.Context(), "own"), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`"run":"`, `"run":"dead`, `"process":"`, `"process":"0`).Replace(entry)
}
