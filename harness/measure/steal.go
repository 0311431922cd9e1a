package measure

import (
	"os"
	"strconv"
	"strings"
)

// cpuTime is processor time in the kernel's ticks, of all processors.
type cpuTime struct{ stolen, total uint64 }

// readCPU reads how much processor time there was, and how much of it the
// hypervisor took; zero where the system does not tell.
func readCPU() cpuTime {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	var t cpuTime
	const steal = 8 // "cpu" user nice system idle iowait irq softirq steal
	for i, f := range fields {
		if i == 0 || i > steal {
			continue // guest time is part of user time
		}
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return cpuTime{}
		}
		t.total += n
		if i == steal {
			t.stolen = n
		}
	}
	return t
}

func (t cpuTime) sub(earlier cpuTime) cpuTime {
	return cpuTime{t.stolen - earlier.stolen, t.total - earlier.total}
}

// share is the part of the processor time that was stolen.
func (t cpuTime) share() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.stolen) / float64(t.total)
}
