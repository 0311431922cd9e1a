package results

// OverTime counts what callers were told in equal slices of a run, by when they were
// told it.
type OverTime struct {
	// SliceNS is the length of a slice in nanoseconds.
	SliceNS int64 `json:"slice_ns"`
	// Admitted requests in each slice.
	Admitted []int64 `json:"admitted"`
	// Rejected requests in each slice.
	Rejected []int64 `json:"rejected"`
	// Errors in each slice.
	Errors []int64 `json:"errors"`
}

// DecisionsPerS is the rate of admitted and rejected requests in a slice, per second.
func (o *OverTime) DecisionsPerS(slice int) float64 {
	return float64(o.Admitted[slice]+o.Rejected[slice]) * 1e9 / float64(o.SliceNS)
}

// Sound reports whether there is a length, and as many counts of each kind as slices.
func (o *OverTime) Sound() bool {
	return o != nil && o.SliceNS > 0 && len(o.Admitted) > 0 && len(o.Rejected) == len(o.Admitted) && len(o.Errors) == len(o.Admitted)
}
