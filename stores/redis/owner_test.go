//go:build unix

package redis_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestRootStartsRedisAsAnotherUser(t *testing.T) {
	r := storetest.Redis(t)
	if os.Geteuid() != 0 {
		t.Skip("servers run as ourselves here")
	}
	dir, err := r.Admin().ConfigGet(t.Context(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fmt.Sprintf("/proc/%d", r.PID()), dir["dir"]} {
		fi, err := os.Stat(path)
		if err != nil {
			t.Skip(err) // a system without /proc
		}
		if uid := fi.Sys().(*syscall.Stat_t).Uid; uid == 0 {
			t.Errorf("%s belongs to root", path)
		}
	}
	if !strings.Contains(r.Info().Detail, ", running as ") {
		t.Errorf("the report does not say as whom it runs: %s", r.Info().Detail)
	}
}
