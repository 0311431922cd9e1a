package redis

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/server"
)

// TestLostRaceForThePort starts servers on ports that another program has: once one that does not
// answer, once another Redis.
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
	_, err = start(t.Context(), bin, port, stores.Options{Dir: parent})
	check(port, err)
	other, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	taken, err := strconv.Atoi(other.server.Port())
	if err != nil {
		t.Fatal(err)
	}
	_, err = start(t.Context(), bin, taken, stores.Options{Dir: parent})
	check(taken, err)
}
