package server

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/quotabench/quotabench/internal/testenv"
)

// TestFind: a program off the PATH is found, and a device or a folder of its name is
// none.
func TestFind(t *testing.T) {
	was := usual
	defer func() { usual = was }()
	usual = []string{t.TempDir()}
	at := filepath.Join(usual[0], "quotabench-planted")
	for what, c := range map[string]struct {
		make func() error
		ok   bool
	}{
		"a file":   {func() error { return os.WriteFile(at, nil, 0o755) }, true},
		"a device": {func() error { return os.Symlink(os.DevNull, at) }, false},
		"a folder": {func() error { return os.Mkdir(at, 0o755) }, false},
		"nothing":  {func() error { return nil }, false},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		if path, ok := Find("quotabench-planted"); ok != c.ok || ok && path != at {
			t.Errorf("%s: %q, %t", what, path, ok)
		}
		_ = os.Remove(at) // there may be nothing
	}
}
