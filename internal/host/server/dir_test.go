//go:build unix

package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestTheLockIsDeletedLast stops a removal at every file. What is left must always
// have its lock, by which the next process knows that it may remove the rest.
func TestTheLockIsDeletedLast(t *testing.T) {
	fill := func(dir string) {
		for _, name := range []string{"a", "log", lockFile, "z/deep"} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var order []string
	dir := t.TempDir()
	fill(dir)
	err := removeDir(dir, func(path string) error {
		order = append(order, filepath.Base(path))
		return os.RemoveAll(path)
	})
	if err != nil || Exists(dir) {
		t.Fatalf("%v; the directory exists: %v", err, Exists(dir))
	}
	if n := len(order); n != 5 || order[n-2] != lockFile || order[n-1] != filepath.Base(dir) {
		t.Errorf("removed in the order %v", order)
	}
	killed := errors.New("killed")
	for _, at := range order[:3] {
		dir := t.TempDir()
		fill(dir)
		err := removeDir(dir, func(path string) error {
			if filepath.Base(path) == at {
				return killed
			}
			return os.RemoveAll(path)
		})
		if !errors.Is(err, killed) || !Exists(filepath.Join(dir, lockFile)) {
			t.Errorf("stopped at %s: %v; the lock exists: %v", at, err, Exists(filepath.Join(dir, lockFile)))
		}
	}
	if err := removeDir(dir, os.RemoveAll); err != nil {
		t.Errorf("a directory that is gone: %v", err)
	}
}

// TestLeftoversWithoutALock: an old directory that holds nothing but our files is a
// leftover, too.
func TestLeftoversWithoutALock(t *testing.T) {
	parent := t.TempDir()
	us, err := ProcessMark(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		age   time.Duration
		files map[string]string
	}{
		"quotabench-1":     {2 * lockless, map[string]string{"data": "", childrenFile: "1 gone\n2147483646 gone\n"}},
		"quotabench-2":     {2 * lockless, nil},
		"quotabench-3.new": {2 * lockless, map[string]string{lockFile: ""}},
		"quotabench-4":     {lockless / 2, nil},
		"quotabench-5":     {2 * lockless, map[string]string{"letter": "mine"}},
		"quotabench-6":     {2 * lockless, map[string]string{childrenFile: us + "\n"}},
		"quotabench-7.new": {lockless / 2, nil},
	} {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range x.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := clock.Wall{}.Now().Add(-x.age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	names := func(paths []string) (out []string) {
		for _, p := range paths {
			out = append(out, filepath.Base(p))
		}
		slices.Sort(out)
		return out
	}
	if got, want := names(Leftovers(parent)),
		[]string{"quotabench-1", "quotabench-2", "quotabench-3.new"}; !slices.Equal(got, want) {
		t.Errorf("leftovers %q, want %q", got, want)
	}
	RemoveLeftovers(t.Context(), parent)
	kept, _ := filepath.Glob(filepath.Join(parent, "*"))
	if got, want := names(kept), []string{"quotabench-4", "quotabench-5", "quotabench-6",
		"quotabench-7.new"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
}

// A private directory is removed by the process that gets its lock.
func TestLeftovers(t *testing.T) {
	parent := t.TempDir()
	used, err := NewDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	left, err := NewDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.lock.Close(); err != nil { // as when its owner dies
		t.Fatal(err)
	}
	RemoveLeftovers(t.Context(), parent)
	if got, _ := filepath.Glob(filepath.Join(parent, "*")); !slices.Equal(got, []string{used.Path}) {
		t.Errorf("%v are left, want %s", got, used.Path)
	}
	if err := used.Remove(); err != nil || Exists(used.Path) {
		t.Errorf("Remove: %v", err)
	}
}
