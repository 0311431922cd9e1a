package network

import (
	"errors"

	"golang.org/x/sys/unix"
)

// sleep waits in the system for so many nanoseconds; a variable for tests in virtual time.
var sleep = func(left int64) {
	timespec := unix.NsecToTimespec(left)
	// by a signal, e.g. one of Go's own: the rest is left
	for errors.Is(unix.Nanosleep(&timespec, &timespec), unix.EINTR) {
	}
}
