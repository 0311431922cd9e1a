package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// ownCPU is what this process has used of the processors.
type ownCPU struct {
	used time.Duration
	// waiting is how long its threads were ready to run and were not running:
	// the run-queue delay. Zero if the system does not tell.
	waiting time.Duration
}

// readOwnCPU reads both. Threads that have ended are missing from waiting.
func readOwnCPU() ownCPU {
	c := ownCPU{used: clock.Processor()}
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return c
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		if fields := strings.Fields(string(b)); len(fields) >= 2 {
			if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				c.waiting += time.Duration(ns)
			}
		}
	}
	return c
}

func (c ownCPU) sub(earlier ownCPU) ownCPU {
	return ownCPU{c.used - earlier.used, max(0, c.waiting-earlier.waiting)}
}
