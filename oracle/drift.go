package oracle

// Interval of units, both ends included.
type Interval struct {
	Lo, Hi int64
}

// Width is 0 if the value is known exactly.
func (i Interval) Width() int64 { return i.Hi - i.Lo }

// Distance is how far v lies outside of the interval: positive above it,
// negative below it, 0 inside.
func (i Interval) Distance(v int64) int64 {
	return v - min(max(v, i.Lo), i.Hi)
}

// Reading is the interval in which a counter was read, in nanoseconds since the
// run's epoch.
type Reading struct {
	Call, Reply int64
}
