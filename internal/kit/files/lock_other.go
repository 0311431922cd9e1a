//go:build !unix

package files

import (
	"errors"
	"io/fs"
	"os"
)

// TakeLock makes the file, without waiting: [ErrHeld] says that it exists. One that a killed process left has to be
// removed by hand.
func TakeLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrHeld
	}
	return &Lock{f}, err
}

// Release gives the lock back. It closes the file first: systems without locks remove no open one.
func (l *Lock) Release() error { return errors.Join(l.file.Close(), os.Remove(l.file.Name())) }
