package stat

import "slices"

// LiveBounds are the upper bounds of the classes of [LiveLatency.UpTo], in nanoseconds.
var LiveBounds = [...]int64{
	1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, // from a microsecond on
	1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, // from a millisecond on
	1e9, 2e9, 5e9,
}

// LiveLatency is the service time of one outcome at one tier, while a run goes on.
type LiveLatency struct {
	// Outcome is "admitted", "rejected" or "error", and Tier is what decided.
	Outcome, Tier string
	// UpTo counts requests by their class: those of at most [LiveBounds] and above the
	// bound before.
	UpTo [len(LiveBounds)]int64
	// Count is all of them, the longer ones included.
	Count int64
	// SumNS is the sum in nanoseconds.
	SumNS int64
	// Degraded counts those that were decided without a store that was to decide.
	Degraded int64
}

// Add counts a request that took so many nanoseconds.
func (l *LiveLatency) Add(ns int64, degraded bool) {
	if degraded {
		l.Degraded++
	}
	if i, _ := slices.BinarySearch(LiveBounds[:], ns); i < len(LiveBounds) {
		l.UpTo[i]++
	}
	l.Count++
	l.SumNS += ns
}

// Merge adds what another one counted.
func (l *LiveLatency) Merge(latency *LiveLatency) {
	for i := range l.UpTo {
		l.UpTo[i] += latency.UpTo[i]
	}
	l.Count += latency.Count
	l.SumNS += latency.SumNS
	l.Degraded += latency.Degraded
}
