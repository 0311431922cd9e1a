//go:build unix

package clock

import (
	"syscall"
	"time"
)

// Processor is the processor time that this process has used, in user and system mode; 0 if it is not known.
func Processor() time.Duration {
	var rusage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &rusage); err != nil {
		return 0
	}
	return time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano())
}
