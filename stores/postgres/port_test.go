package postgres

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

// TestLostRaceForThePort starts servers on ports that a program has that does not answer.
func TestLostRaceForThePort(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	parent := t.TempDir()
	for _, d := range []string{parent, filepath.Dir(parent)} { // for another account
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := find()
	if err != nil {
		t.Skip(err)
	}
	user, err := account()
	if err != nil {
		t.Skip(err)
	}
	check := func(port int, err error) {
		t.Helper()
		if !errors.Is(err, server.ErrPortTaken) {
			t.Errorf("on port %d: %v", port, err)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
	port := mute.Addr().(*net.TCPAddr).Port
	_, err = start(t.Context(), bin, port, user, stores.Options{Dir: parent})
	check(port, err)
}

func TestNewestPostgresWins(t *testing.T) {
	for path, want := range map[string]float64{
		"/usr/lib/postgresql/15/bin":                              15,
		"/usr/lib/postgresql/9.6/bin":                             9.6,
		"/opt/homebrew/opt/postgresql@17/bin":                     17,
		"/usr/pgsql-16/bin":                                       16,
		"/usr/local/pgsql/bin":                                    0,
		"/Applications/Postgres.app/Contents/Versions/latest/bin": 0,
	} {
		if got := versionIn(path); got != want {
			t.Errorf("versionIn(%s) = %v, want %v", path, got, want)
		}
	}
}
