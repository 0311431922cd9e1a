//go:build !unix

package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// open makes the file, which must not exist. One that a killed process left has to be
// removed by hand.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrHeld
	}
	return f, err
}

// release closes the file first: systems without locks remove no open one.
func release(path string, f *os.File) error { return errors.Join(f.Close(), os.Remove(path)) }
