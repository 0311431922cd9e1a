package network

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSleepThroughSignals: signals, which Go's runtime sends to its threads, too, do not end a wait early.
func TestSleepThroughSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	}()
	begun := now()
	sleep(int64(50 * time.Millisecond))
	took := time.Duration(now() - begun)
	close(done)
	<-ended
	if took < 50*time.Millisecond {
		t.Errorf("%v", took)
	}
}
