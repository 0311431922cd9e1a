package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// TestWhatLeavesItsGroupEnds: a process that a child has started, and that has a session of its own, ends with it.
func TestWhatLeavesItsGroupEnds(t *testing.T) {
	dir, err := NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const own = "QUOTABENCH_TEST_OF_THOSE_WHO_LEAVE=1"
	cmd := exec.Command("sh", "-c", "setsid sh -c 'setsid sleep 600 & sleep 600' & echo begun; exec sleep 600")
	cmd.Env = append(os.Environ(), own)
	child, err := Start(cmd, dir, os.Kill, os.Kill, nil)
	if err != nil {
		t.Fatal(err)
	}
	asleep := func() (n int) {
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range files {
			environment, _ := os.ReadFile(path)
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if strings.Contains(string(environment), own) && strings.HasPrefix(string(command), "sleep") {
				n++
			}
		}
		return n
	}
	for asleep() < 3 { // the test's own time limit ends it otherwise
		if strings.Contains(child.Output(), "not found") {
			_ = child.Close()
			t.Skip("no setsid here")
		}
		_ = (clock.Wall{}).Sleep(t.Context(), 10*time.Millisecond)
	}
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	for tries := 0; asleep() > 0; tries++ { // they were killed, and end when they get a core
		if tries == 3000 {
			t.Fatalf("%d processes are left", asleep())
		}
		_ = (clock.Wall{}).Sleep(t.Context(), 10*time.Millisecond)
	}
}
