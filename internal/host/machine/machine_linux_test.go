package machine

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadCPU(t *testing.T) {
	for text, want := range map[string]CPUTime{
		"cpu  10 0 10 60 5 3 2 10 400 7\ncpu0 1\n": {Stolen: 0.1, Busy: 0.25, Total: 1}, // guests are not counted twice
		"cpu  500 0 400 90 5 0 0 5\n":              {Stolen: 0.05, Busy: 9, Total: 10},
		"cpu  1 2 3\n":                             {},
		"cpu  a 0 400 90 5 0 0 5\n":                {},
		"":                                         {},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOST_PROC", dir)
		if got := ReadCPU(); math.Abs(got.Stolen-want.Stolen) > 1e-9 || math.Abs(got.Total-want.Total) > 1e-9 ||
			math.Abs(got.Busy-want.Busy) > 1e-9 {
			t.Errorf("%q gives %+v, want %+v", text, got, want)
		}
	}
	t.Setenv("HOST_PROC", t.TempDir())
	if got := ReadCPU(); got != (CPUTime{}) {
		t.Errorf("no file gives %+v", got)
	}
}

func TestCPUTime(t *testing.T) {
	passed := CPUTime{Stolen: 3.01, Total: 110}.Sub(CPUTime{Stolen: 1, Total: 10})
	if math.Abs(passed.Stolen-2.01) > 1e-9 || passed.Total != 100 || math.Abs(passed.Share()-0.02) > 1e-9 ||
		(CPUTime{}).Share() != 0 {
		t.Errorf("%+v, share %v", passed, passed.Share())
	}
	// One tick of a short run is more than 1 % of its time, and may be no time at all.
	if share := (CPUTime{Stolen: 0.01, Total: 0.3}).Share(); share != 0 {
		t.Errorf("a tick is a share of %v", share)
	}
}

// The name is that of /proc/cpuinfo, if it has one.
func TestCPUModel(t *testing.T) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if k, v, _ := strings.Cut(line, ":"); strings.TrimSpace(k) == "model name" {
			if got := CPUModel(); got != strings.TrimSpace(v) {
				t.Errorf("%q, want %q", got, strings.TrimSpace(v))
			}
			return
		}
	}
	t.Skip("the processor has no name here")
}
