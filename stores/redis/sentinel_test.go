package redis_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestSentinel has a sentinel name the master, and promotes its replica: a client
// finds it.
func TestSentinel(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:replicas=1")
	sentinel := startSentinel(t, s)
	t.Setenv("REDISCLI_AUTH", s.Admin().Options().Password)
	found, err := redis.Open(t.Context(), "sentinel:redis://"+sentinel+"?master_name=planted", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	scope := storetest.Scope(t)
	var m stores.Meter
	c := clientOf(t, found, stores.ConnOptions{Pool: 2, Meter: &m})
	sent := m.Snapshot()
	if err := c.Set(t.Context(), scope.Prefix()+"k", 5, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := m.Snapshot().Sub(sent).Commands; n != 1 {
		t.Errorf("%d commands metered, want 1", n)
	}
	if n, err := s.Admin().Get(t.Context(), scope.Prefix()+"k").Int(); err != nil || n != 5 {
		t.Errorf("the master has %d, %v", n, err)
	}
	if u, err := found.Usage(t.Context(), scope); err != nil || u.Keys != 1 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := found.Wipe(t.Context(), scope); err != nil {
		t.Error(err)
	}
	if st, err := found.Stats(t.Context()); err != nil || !st.Known {
		t.Errorf("stats %+v, %v", st, err)
	}
	if _, err := redis.Open(t.Context(), "sentinel:redis://"+sentinel+"?master_name=other", stores.Options{}); err == nil {
		t.Error("a master that no sentinel knows was opened")
	}
}

// startSentinel starts a sentinel that watches the master, and returns its address.
func startSentinel(t *testing.T, master *redis.Store) string {
	t.Helper()
	bin := testenv.Program(t, "redis")
	dir := t.TempDir()
	port := unusedPort(t)
	host, masterPort, _ := strings.Cut(master.Info().Addr, ":")
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nsentinel monitor planted %s %s 1\nsentinel auth-pass "+
		"planted %s\n",
		port, dir, host, masterPort, master.Admin().Options().Password)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, conf, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	storecheck.Eventually(t, "the sentinel answers", func() bool { return c.Ping(t.Context()).Err() == nil })
	return addr
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// TestStartedSentinels kills the master: clients follow the sentinels to the replica that
// takes its place, which has what was written.
func TestStartedSentinels(t *testing.T) {
	testenv.Long(t)
	s := started(t, "process:sentinel=3")
	ctx := t.Context()
	if !s.Owned() || stores.PlaceOf(s) != stores.StartedHere || strings.Count(s.Info().Addr, ",") != 2 ||
		s.Info().Version == "" {
		t.Errorf("%+v, owned %v", s.Info(), s.Owned())
	}
	if pids, err := s.Processes(ctx); err != nil || len(pids) != 5 {
		t.Errorf("processes %v, %v, want those of a master, its replica and three sentinels", pids, err)
	}
	c := clientOf(t, s, stores.ConnOptions{Pool: 2})
	if n, err := waited(t, c); n != 1 || err != nil {
		t.Fatalf("WAIT: %d, %v", n, err)
	}
	before, err := s.Stats(ctx)
	if err != nil || !before.Known {
		t.Fatalf("stats %+v, %v", before, err)
	}
	master, err := os.FindProcess(s.PID())
	if err == nil {
		err = master.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	storecheck.Eventually(t, "the replica takes writes", func() bool { return c.Set(ctx, "after", 1, 0).Err() == nil })
	if n, err := c.Get(ctx, "k").Int(); n != 7 || err != nil {
		t.Errorf("the new master has %d, %v, want 7", n, err)
	}
	if after, err := s.Stats(ctx); err != nil || !stores.Restarted(before.Incarnation, after.Incarnation) {
		t.Errorf("stats %+v after %+v, %v: the master is another one", after, before, err)
	}
	if pids, err := s.Processes(ctx); err != nil || len(pids) != 4 {
		t.Errorf("processes %v, %v, want those that live", pids, err)
	}
}
