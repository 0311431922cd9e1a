package service

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// errGoesOn says that the clock of an instance cannot be stopped.
var errGoesOn = errors.New("the clock of the service cannot be stopped")

// Stopped reports whether the clocks of instances do not go by themselves.
func (w *Engine) Stopped() bool { return !w.cmd.Clock.IsZero() }

// ClockLayout is how a clock's moment is written, as libfaketime reads it.
const ClockLayout = time.DateTime

// stopped are the variables that have an instance's clock stand, or move as its file says. Its monotonic clock, by
// which timeouts end, goes on.
func (w *Engine) stopped(in *instance) []string {
	command := &w.cmd
	if command.Clock.IsZero() {
		return nil
	}
	moment := []string{"FAKETIME=" + command.Clock.Add(w.Setup.SkewOf(in.index)).Format(ClockLayout)}
	if w.follows() {
		moment = []string{"FAKETIME_TIMESTAMP_FILE=" + in.clock, "FAKETIME_NO_CACHE=1"}
	}
	return append(moment, "LD_PRELOAD="+command.faketime, "DYLD_INSERT_LIBRARIES="+
		command.faketime, "DYLD_FORCE_FLAT_NAMESPACE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1")
}

// checkClock reports why an instance's clock goes on, as far as that can be seen: on Linux, and of the process that was
// started.
func (w *Engine) checkClock(in *instance) error {
	process := fmt.Sprintf("/proc/%d", in.child.PID())
	maps, err := os.ReadFile(process + "/maps")
	if w.cmd.Clock.IsZero() || err != nil {
		return nil
	}
	if _, err := buildinfo.ReadFile(process + "/exe"); err == nil {
		return unfit("%w: it is a Go program, which libfaketime does not reach", errGoesOn)
	}
	if !strings.Contains(string(maps), "libfaketime") {
		return unfit("%w: libfaketime is not loaded into its process, which is linked statically, or has another "+
			"LD_PRELOAD", errGoesOn)
	}
	return nil
}
