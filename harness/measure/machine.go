package measure

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// machineTime is processor time in the kernel's ticks, of all processors.
type machineTime struct{ busy, stolen, total uint64 }

// tick is the unit in which Linux tells processor time to programs.
const tick = 10 * time.Millisecond

// readMachine reads how much processor time there was, how much of it programs
// used, and how much the hypervisor took; zero where the system does not tell.
func readMachine() machineTime {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineTime{}
	}
	line, _, _ := strings.Cut(string(b), "\n")
	// "cpu" user nice system idle iowait irq softirq steal; guest time, which
	// follows, is part of user time.
	const idle, iowait, steal = 4, 5, 8
	var t machineTime
	for i, f := range strings.Fields(line) {
		if i == 0 || i > steal {
			continue
		}
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return machineTime{}
		}
		t.total += n
		switch i {
		case steal:
			t.stolen = n
		case idle, iowait:
		default:
			t.busy += n
		}
	}
	return t
}

func (t machineTime) sub(earlier machineTime) machineTime {
	return machineTime{t.busy - earlier.busy, t.stolen - earlier.stolen, t.total - earlier.total}
}

// stolenShare is the part of the processor time that the hypervisor took.
func (t machineTime) stolenShare() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.stolen) / float64(t.total)
}

// minTicks are the fewest from which a share of programs can be read: fewer
// differ by as much from one reading to the next.
const minTicks = 20

// busyTime is what all programs used; ok is false where too little time has
// passed to tell.
func (t machineTime) busyTime() (d time.Duration, ok bool) {
	return time.Duration(t.busy) * tick, t.total >= minTicks
}

// wallTime is the processor time that there was.
func (t machineTime) wallTime() time.Duration { return time.Duration(t.total) * tick }
