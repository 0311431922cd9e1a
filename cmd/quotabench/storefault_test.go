//go:build linux

package main

import (
	"bytes"
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestStoreKilledAmidARun: the command says in one line that the store failed and when,
// blames no strategy, and exits with the code that the table of faults in
// docs/store-faults.md names.
func TestStoreKilledAmidARun(t *testing.T) {
	storetest.Redis(t) // skips where there is none
	victim, err := redis.Open(t.Context(), "process", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Close() }() // which says that it has ended
	o := victim.Admin().Options()
	at := (&url.URL{Scheme: "redis", User: url.UserPassword("", o.Password), Host: o.Addr}).String()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	killed := make(chan error, 1)
	go func() {
		for len(victim.Admin().Keys(ctx, "*quotabench-mark*").Val()) == 0 { // the pass has not begun
			if err := (clock.Wall{}).Sleep(ctx, 5*time.Millisecond); err != nil {
				killed <- err
				return
			}
		}
		killed <- syscall.Kill(victim.PID(), syscall.SIGKILL)
	}()
	var stdout, stderr bytes.Buffer
	code := cli.Main([]string{"run", "incr-expire", "--redis", at, "--rounds", "1", "--loop", "closed", "--duration", "1s", "--workers", "4", "--out", filepath.Join(t.TempDir(), "out")}, &stdout, &stderr)
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	all := stdout.String() + stderr.String()
	last := stderr.String()[strings.LastIndex(strings.TrimSpace(stderr.String()), "\n")+1:]
	if code != cli.ExitFailed || !strings.Contains(last, "the correctness figures are invalid: store-failed: redis") || !strings.Contains(last, "between ") {
		t.Errorf("exit %d: %s", code, all)
	}
	if strings.Contains(all, "broke its declared guarantee") {
		t.Errorf("the strategy is blamed: %s", all)
	}
}
