//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// attempts are many: each but the last met a file that was removed meanwhile.
const attempts = 100

// TakeLock makes the file and locks it, without waiting: [ErrHeld] says that another
// process has it. The lock of a process that was killed is free.
func TakeLock(path string) (*Lock, error) {
	for range attempts {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = ErrHeld
			}
			return nil, errors.Join(err, file.Close())
		}
		// Whoever held it may have removed it in between: then it is another file.
		here, err1 := file.Stat()
		there, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(here, there) {
			return &Lock{file}, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return nil, ErrHeld
}

// Release gives the lock back. It removes the file before that.
func (l *Lock) Release() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }
