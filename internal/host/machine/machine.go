// Package machine says what the processors of this machine are and did.
package machine

import (
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
)

// CPUTime is processor time in seconds, of all processors, since the machine
// started. The zero value is that of a system that does not tell.
type CPUTime struct {
	// Stolen is what the hypervisor gave to other machines.
	Stolen float64
	// Busy is what programs and the system used.
	Busy float64
	// Total is all there was: used, idle and stolen.
	Total float64
}

// ReadCPU reads the processor time. Only Linux knows how much was stolen.
func ReadCPU() CPUTime {
	if runtime.GOOS != "linux" {
		return CPUTime{}
	}
	all, err := cpu.Times(false)
	if err != nil || len(all) != 1 {
		return CPUTime{}
	}
	stat := all[0]
	// Time of guests is part of the user's.
	busy := stat.User + stat.Nice + stat.System + stat.Irq + stat.Softirq
	return CPUTime{Stolen: stat.Steal, Busy: busy, Total: busy + stat.Idle + stat.Iowait + stat.Steal}
}

// Sub is what passed between the earlier reading and t.
func (t CPUTime) Sub(earlier CPUTime) CPUTime {
	return CPUTime{t.Stolen - earlier.Stolen, t.Busy - earlier.Busy, t.Total - earlier.Total}
}

// tick is the time in seconds by which the system counts: a difference of two readings may show one more than there
// was.
const tick = 0.01

// Share is the part of the processor time that was stolen for certain, 0 to 1.
func (t CPUTime) Share() float64 {
	if t.Total <= 0 {
		return 0
	}
	return max(0, t.Stolen-tick) / t.Total
}

// CPUModel is the processor's name, or empty if the system does not tell.
func CPUModel() string {
	all, err := cpu.Info()
	if err != nil || len(all) == 0 {
		return ""
	}
	return all[0].ModelName
}

// Wait is what one thread has had of the processors since it began.
type Wait struct {
	// Process and Thread are the system's numbers of the two.
	Process, Thread int
	// Ran is the time in nanoseconds for which it ran. The system brings it up to
	// date at its clock ticks if the thread runs at this moment.
	Ran int64
	// Waited is the time in nanoseconds for which it was ready to run and another
	// thread ran: the run-queue delay. A wait counts when it has ended.
	Waited int64
	// Switches counts how often it was given a processor.
	Switches int64
}
