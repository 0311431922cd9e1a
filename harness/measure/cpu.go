package measure

import (
	"os"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine/cores"
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
	_, c.waiting = cores.ThreadTimes(os.Getpid())
	return c
}

func (c ownCPU) sub(earlier ownCPU) ownCPU {
	return ownCPU{c.used - earlier.used, max(0, c.waiting-earlier.waiting)}
}
