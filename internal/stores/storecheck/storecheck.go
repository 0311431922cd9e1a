// Package storecheck holds what the tests of several kinds of stores share.
package storecheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

// Error demands one line that says all of want and not the password "s3cr3t".
func Error(t testing.TB, err error, want ...string) {
	t.Helper()
	text := err.Error()
	if strings.Contains(text, "s3cr3t") {
		t.Errorf("shows a password: %s", text)
	}
	if strings.Contains(text, "\n") {
		t.Errorf("more than one line: %q", text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("does not say %q: %s", w, text)
		}
	}
}

// Hidden demands that no other account can read the password: neither in the store's description, nor among its
// arguments, nor in the command line of any process (on Linux). A short one could be found there by chance.
func Hidden(t testing.TB, password string, info stores.Info, args []string) {
	t.Helper()
	if len(password) < 20 {
		t.Fatalf("a password of %d characters, want 20 or more", len(password))
	}
	if strings.Contains(fmt.Sprintf("%+v %q", info, args), password) {
		t.Errorf("shown in its description or among its %d arguments", len(args))
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline") // there is none outside Linux
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		data, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(data), password) {
			t.Errorf("shown in %s: %q", name, strings.ReplaceAll(string(data), password, "***"))
		}
	}
}

// Eventually waits for cond. The limit only ends a test that would hang.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	const limit = 2 * time.Minute
	for from := clock.Nano(); clock.Nano()-from < int64(limit); {
		if cond() {
			return
		}
		if err := (clock.Wall{}).Sleep(context.Background(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("after %v still not true: %s", limit, what)
}

// LostRace starts servers by start on ports that another program has: one that
// does not answer, and those in also. Each must fail because its port is taken,
// and leave nothing in its directory.
func LostRace(t testing.TB, start func(port int, options stores.Options) error, also ...int) {
	t.Helper()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	parent := Enterable(t)
	for _, port := range append(also, mute.Addr().(*net.TCPAddr).Port) {
		if err := start(port, stores.Options{Dir: parent}); !errors.Is(err, server.ErrPortTaken) {
			t.Errorf("on port %d: %v", port, err)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// Refused opens by each spec, and demands an error of one line with the words.
func Refused[S stores.Store](t testing.TB, open func(context.Context, string, stores.Options) (S, error),
	words map[string]string) {
	t.Helper()
	for spec, want := range words {
		if s, err := open(t.Context(), spec, stores.Options{}); err == nil {
			_ = s.Close()
			t.Errorf("%q is opened", spec)
		} else {
			Error(t, err, want)
		}
	}
}

// Enterable is a directory that servers of another account can enter.
func Enterable(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, text := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
