//go:build unix

package measure

import (
	"syscall"
	"time"
)

// processCPU is the processor time of this process in user and system mode.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
