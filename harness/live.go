package harness

import "slices"

// LiveBounds are the upper bounds of the classes of [LiveLatency.UpTo], in nanoseconds.
var LiveBounds = liveBounds()

const liveClasses = 21

// liveBounds are 1, 2 and 5 of every power of ten from 1 µs to 5 s.
func liveBounds() (out [liveClasses]int64) {
	i := 0
	for ten := int64(1_000); ten <= 1_000_000_000; ten *= 10 {
		for _, x := range []int64{1, 2, 5} {
			out[i] = x * ten
			i++
		}
	}
	return out
}

// LiveLatency is the service time of one outcome at one tier, while a run goes on.
type LiveLatency struct {
	// Outcome is "admitted", "rejected" or "error", and Tier is what decided.
	Outcome, Tier string
	// UpTo counts requests by their class: those of at most [LiveBounds] and above the
	// bound before.
	UpTo [liveClasses]int64
	// Count is all of them, the longer ones included.
	Count int64
	// SumNS is the sum in nanoseconds.
	SumNS int64
}

// Add counts a request that took so many nanoseconds.
func (l *LiveLatency) Add(ns int64) {
	if i, _ := slices.BinarySearch(LiveBounds[:], ns); i < liveClasses {
		l.UpTo[i]++
	}
	l.Count++
	l.SumNS += ns
}

// Merge adds what another one counted.
func (l *LiveLatency) Merge(o *LiveLatency) {
	for i := range l.UpTo {
		l.UpTo[i] += o.UpTo[i]
	}
	l.Count += o.Count
	l.SumNS += o.SumNS
}
