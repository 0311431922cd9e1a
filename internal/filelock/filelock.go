// Package filelock lets one process at a time use a directory.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld is the error of a lock that another process holds.
var ErrHeld = errors.New("another process uses it")

// Lock is a file that this process holds.
type Lock struct {
	path string
	file *os.File
}

// Take makes the file and locks it, without waiting: [ErrHeld] says that another
// process has it. If the system gives locks back, one of a process that was killed
// is free.
func Take(path string) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Lock{path, f}, nil
}

// Release removes the file and gives the lock back.
func (l *Lock) Release() error { return release(l.path, l.file) }
