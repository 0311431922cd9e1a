//go:build unix

package all_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

func startVictim(t *testing.T, kind, dir string) (*exec.Cmd, victimReport) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+dir, victimKindEnv+"="+kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // again if the test did
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var rep victimReport
	if err := json.Unmarshal(line, &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Err != "" {
		t.Fatal(rep.Err)
	}
	return cmd, rep
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func privateDirs(t *testing.T, parent string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(parent, "quotabench-*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func TestKillLeavesNothingBehind(t *testing.T) {
	testenv.Long(t)
	storetest.Redis(t)
	storetest.Postgres(t)
	parent := t.TempDir()
	openUp(t, parent)
	cmd, rep := startVictim(t, "process", parent)
	if rep.Redis == 0 || rep.Postgres == 0 || !alive(rep.Redis) || !alive(rep.Postgres) {
		t.Fatalf("the servers did not start: %+v", rep)
	}
	if n := len(privateDirs(t, parent)); n != 2 {
		t.Fatalf("%d private directories, want 2", n)
	}

	// While their owner lives, its directories are not to be touched.
	mine, err := redis.Open(context.Background(), "process", stores.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(privateDirs(t, parent)); n != 2 || !alive(rep.Redis) {
		t.Fatalf("%d directories of a living process are left of 2", n)
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	if runtime.GOOS == "linux" {
		storecheck.Eventually(t, "redis-server ends with its parent", func() bool { return !alive(rep.Redis) })
		storecheck.Eventually(t, "postgres ends with its parent", func() bool { return !alive(rep.Postgres) })
	}

	next, err := redis.Open(context.Background(), "process", stores.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	if dirs := privateDirs(t, parent); len(dirs) != 1 {
		t.Errorf("after the next open there are %d directories, want its own alone: %v", len(dirs), dirs)
	}
	if alive(rep.Redis) || alive(rep.Postgres) {
		t.Error("a server outlived its owner and the clean-up")
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if dirs := privateDirs(t, parent); len(dirs) != 0 {
		t.Errorf("left after close: %v", dirs)
	}
}

// openUp lets the account that PostgreSQL runs as reach a test's folder.
func openUp(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsServers(t *testing.T) {
	storetest.Redis(t)
	storetest.Postgres(t)
	parent := t.TempDir()
	openUp(t, parent)
	ctx := context.Background()
	r, err := redis.Open(ctx, "process", stores.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	p, err := postgres.Open(ctx, "process", stores.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Info().Durability; got != "fsync on, synchronous_commit on" {
		t.Errorf("durability %q, want that which PostgreSQL ships with", got)
	}
	pids := []int{r.PID(), p.PID()}
	// The terminal's Ctrl-C goes to a process group, which must not be theirs.
	for _, pid := range pids {
		if g, err := syscall.Getpgid(pid); err != nil || g != pid {
			t.Errorf("process %d is in group %d (%v), want its own", pid, g, err)
		}
	}
	for range 2 { // the second time it does nothing
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if dirs := privateDirs(t, parent); len(dirs) != 0 {
		t.Errorf("left: %v", dirs)
	}
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	storetest.Postgres(t)
	parent := t.TempDir()
	openUp(t, parent)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, spec := range []string{"process", "auto"} {
		if p, err := postgres.Open(ctx, spec, stores.Options{Dir: parent}); err == nil {
			_ = p.Close()
			t.Errorf("%s: opened although the context was done", spec)
		}
		if r, err := redis.Open(ctx, spec, stores.Options{Dir: parent}); err == nil {
			_ = r.Close()
			t.Errorf("%s: opened although the context was done", spec)
		}
	}
	if dirs := privateDirs(t, parent); len(dirs) != 0 {
		t.Errorf("left: %v", dirs)
	}
}

// startSleeper starts a process that lives until it is killed.
func startSleeper(t *testing.T) (pid int, ended <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return cmd.Process.Pid, done
}

func TestLeftoversAreEndedOnlyIfTheyAreOurs(t *testing.T) {
	storetest.Redis(t)
	parent := t.TempDir()
	ours, oursEnded := startSleeper(t)
	theirs, theirsEnded := startSleeper(t)
	id, err := server.ProcessIdentity(ours)
	if err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(parent, "quotabench-1234")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(leftover, "lock"), "")
	// The number of theirs was given out again: it started at another time.
	write(filepath.Join(leftover, "children"),
		fmt.Sprintf("%d %s\n%d %s-before\nnonsense\n1 %s\n", ours, id, theirs, id, id))
	foreign := filepath.Join(parent, "quotabench-notes", "notes.txt") // a user's own folder
	write(foreign, "mine")

	r, err := redis.Open(context.Background(), "process", stores.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	select {
	case <-oursEnded:
	default:
		t.Error("the child of a dead owner still runs")
	}
	select {
	case <-theirsEnded:
		t.Error("a process was ended that is not the one recorded")
	default:
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("the leftover is still there (%v)", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a folder without our lock was touched: %v", err)
	}
}

// TestFolderThatTheServerMayNotEnter: a server that runs as another user says
// nothing when it cannot reach its folder, so we must.
func TestFolderThatTheServerMayNotEnter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("servers run as ourselves here")
	}
	storetest.Postgres(t) // skips if there is none
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), "process", stores.Options{Dir: closed})
	if err == nil || !strings.Contains(err.Error(), "set TMPDIR") || !strings.Contains(err.Error(), closed) {
		t.Errorf("%v; want the folder and a way out", err)
	}
}
