package network

import "golang.org/x/sys/unix"

// sleep waits in the system for so many nanoseconds; a variable for tests in virtual time.
var sleep = func(left int64) {
	ts := unix.NsecToTimespec(left)
	_ = unix.Nanosleep(&ts, nil) // an early end is by a signal, and short
}
