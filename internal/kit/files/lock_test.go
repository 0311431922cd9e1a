package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the file is still there")
	}
	l, err = TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// TestNoLink: a lock must not be made where a link points to.
func TestNoLink(t *testing.T) {
	dir := t.TempDir()
	aim := filepath.Join(dir, "elsewhere")
	path := filepath.Join(dir, "lock")
	if err := os.Symlink(aim, path); err != nil {
		t.Skip(err)
	}
	if _, err := TakeLock(path); err == nil {
		t.Error("a lock was taken through a link")
	}
	if _, err := os.Lstat(aim); err == nil {
		t.Error("a file was made through a link")
	}
}
