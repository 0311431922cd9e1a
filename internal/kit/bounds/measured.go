package bounds

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// LeastRounds is from how many kept rounds on timings of several rounds count, and an interval
// is given.
const LeastRounds = 6

// maxClockSkew is how far a clock may be ahead or behind.
const maxClockSkew = 366 * 24 * time.Hour

// DefaultLife is the life of a pre-signed URL if nothing else is said.
const DefaultLife = 15 * time.Minute

// CheckSkew reports the first clock that is more than a year off.
func CheckSkew(skew []time.Duration) error {
	for i, duration := range skew {
		if duration > maxClockSkew || duration < -maxClockSkew {
			return fmt.Errorf("the clock of instance %d is ahead by %v: give from %v to %v", i, duration, -maxClockSkew,
				maxClockSkew)
		}
	}
	return nil
}

// The default and the bounds of how long a decision may take.
const (
	// DecisionTimeout is how long a decision may take if nothing else is said.
	// Clients of stores give up a dial after 5 s and a read after 3: a decision that waits
	// for a store that is away ends with an error of its own before that.
	DecisionTimeout    = 10 * time.Second
	minDecisionTimeout = 10 * time.Millisecond
	MaxDecisionTimeout = time.Hour
)

// CheckDecisionTimeout reports a time-out of decisions that is out of bounds.
func CheckDecisionTimeout(duration time.Duration) error {
	if duration < minDecisionTimeout || duration > MaxDecisionTimeout {
		return fmt.Errorf("a time-out of decisions of %v: give %v to %v", duration, minDecisionTimeout, MaxDecisionTimeout)
	}
	return nil
}

// hotKeyLimit, in requests, is crossed thousands of times instead of once.
const hotKeyLimit = 50

// ForCrossings is the policy with a limit for workloads that count how often a limit is crossed.
func ForCrossings(policy quota.Policy) quota.Policy {
	policy.Limit = min(policy.Limit, hotKeyLimit*slices.Max(append([]int64{1}, policy.Costs...)))
	return policy
}

// Quarters is how many parts a round is divided into, to tell when entries were stored.
const Quarters = 4

// The first request IDs of what is not measured, far above any measured one.
const (
	FillID   = 1 << 62
	WarmUpID = 1 << 61
	ProbeID  = 1 << 60
)

// MaxRecorded is the longest duration in nanoseconds that a histogram tells
// apart from longer ones.
const MaxRecorded = int64(time.Hour)

// MaxDisturbed is the share of rounds with a finding that marks timings above which the
// figures of all rounds are marked.
const MaxDisturbed = 0.2

// Marked reports whether timings are marked if so many of their rounds were disturbed.
func Marked(disturbed, rounds int) bool { return float64(disturbed) > MaxDisturbed*float64(rounds) }
