// Package bounds holds the defaults and the bounds of numbers that more than one package has to know: runners check
// them, and settings say them.
package bounds

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Bounds of what all runners accept.
const (
	// MaxInstances is how many instances an event of the oracle can tell apart.
	MaxInstances = 255
	// MaxRequests is the most requests of one run: each is at least one event of its history. A fast strategy on a real
	// Redis takes about ten minutes for them.
	MaxRequests = 1 << 27
	// MaxRate is an arrival per nanosecond, which is what time is counted in.
	MaxRate = 1e9
	// MaxLife is how long a request may be waited for.
	MaxLife = quota.MaxLength
)

// Defaults and bounds of measured runs.
const (
	// RoundDuration is the default length of a loop. Rounds are short and many: noise of the machine then meets all
	// strategies alike.
	RoundDuration = 100 * time.Millisecond
	// TroubleDuration is the default length of a run with outages, which are shares of it, or with a network: clients must
	// have time to notice an outage and to connect again.
	TroubleDuration = time.Second

	// MaxWorkers is how many workers may send requests.
	MaxWorkers = 20_000
	// MaxRounds is how often each strategy may be measured.
	MaxRounds = 1_000
	// MaxRuns is how many runs a measurement has: strategies in rounds. Their record is one file.
	MaxRuns = 10_000
	// MaxDuration is the time of one run.
	MaxDuration = 24 * time.Hour
	// MaxRetries is how often a Redis client may repeat a command.
	MaxRetries = 100
	// MaxPool is how many connections one instance may have to one store.
	MaxPool = 10_000
)

// Bounds of simulations.
const (
	// MaxVirtualWorkers is how many workers may send requests.
	MaxVirtualWorkers = 100_000
	// MaxVirtualDuration is the virtual time of one run.
	MaxVirtualDuration = 10 * 366 * 24 * time.Hour
	// MaxParallel is how many strategies may be simulated at the same time.
	MaxParallel = 1024
	// MaxTracked is how many subjects may have their counters read at each sample.
	MaxTracked = 1_000_000
)
