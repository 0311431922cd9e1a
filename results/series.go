package results

// SeriesFile is one series.json.
type SeriesFile struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Series of every run.
	Series []Series `json:"series"`
}

// Series is how a run develops over virtual time. Counts are totals since the
// start, as callers were told; leak and false rejects are those that are certain
// by then, and if requests lie across a boundary the run's verdict knows more.
type Series struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Unit is what is counted, plural.
	Unit string `json:"unit"`
	// Tracked is how many subjects' counters are read at each sample.
	Tracked int `json:"tracked"`
	// Tiers that decided, in the order of Sample.Hits.
	Tiers []string `json:"tiers"`
	// Counters are the tiers that were read, in the order of Sample.Counters.
	Counters []string `json:"counters"`
	// Samples in the order of time.
	Samples []Sample `json:"samples"`
	// Outages are planned ones.
	Outages []Span `json:"outages,omitempty"`
	// Start is when the run began, as RFC 3339, under a policy of calendar windows; empty
	// otherwise.
	Start string `json:"start,omitempty"`
	// Zone is the time zone of these windows, as the IANA names it; empty otherwise.
	Zone string `json:"zone,omitempty"`
	// WindowEndsNS are when windows ended for all subjects at once, in nanoseconds since
	// the start; none for other kinds of window, and if there are more than 1,000.
	WindowEndsNS []int64 `json:"window_ends_ns,omitempty"`
}

// Span is when a store was away, since the start.
type Span struct {
	// Store is its name.
	Store string `json:"store"`
	// Network is what was wrong with the network to it, as in the parameters; "" if the store was taken away.
	Network string `json:"network,omitempty"`
	// FromNS is when it went, in nanoseconds.
	FromNS int64 `json:"from_ns"`
	// ToNS is when it came back.
	ToNS int64 `json:"to_ns"`
	// Admitted counts requests that were made and answered in between and admitted; 0 in a series.
	Admitted int64 `json:"admitted,omitempty"`
	// Rejected counts such requests that were rejected.
	Rejected int64 `json:"rejected,omitempty"`
	// Errors counts such requests that ended in an error.
	Errors int64 `json:"errors,omitempty"`
	// AdmittedByStore counts the admitted of which the strategy says that this kind of store decided them, which
	// was away for all; absent if it was away for some.
	AdmittedByStore int64 `json:"admitted_by_store,omitempty"`
	// RejectedByStore counts the rejected of the same kind.
	RejectedByStore int64 `json:"rejected_by_store,omitempty"`
	// Away is when it was away for all and for certain, from and to, in nanoseconds; zeros if it was not. It is not
	// stored.
	Away [2]int64 `json:"-"`
}

// Sample is one moment of a series.
type Sample struct {
	// AtNS is the moment in nanoseconds since the start.
	AtNS int64 `json:"at_ns"`
	// Issued requests so far.
	Issued int64 `json:"issued"`
	// Admitted requests so far.
	Admitted int64 `json:"admitted"`
	// Rejected requests so far.
	Rejected int64 `json:"rejected"`
	// Errors so far.
	Errors int64 `json:"errors"`
	// InFlight requests.
	InFlight int64 `json:"in_flight"`
	// Usage is what all subjects hold in the window in force, in units.
	Usage int64 `json:"usage"`
	// Fill is what of it subjects held at the start.
	Fill int64 `json:"fill"`
	// Leak so far in units.
	Leak int64 `json:"leak"`
	// FalseRejects so far.
	FalseRejects int64 `json:"false_rejects"`
	// Keys in all Redis that have not expired; 0 on a real one that may serve others too.
	Keys int64 `json:"keys"`
	// KeysWithoutTTL are those of them that never expire.
	KeysWithoutTTL int64 `json:"keys_without_ttl,omitempty"`
	// Bytes by which the data set of a real Redis has grown; 0 for a model.
	Bytes int64 `json:"bytes,omitempty"`
	// Hits are decisions by tier so far.
	Hits []int64 `json:"hits"`
	// Counters are what tiers believed of the tracked subjects.
	Counters []Counter `json:"counters"`
}

// Counter is what one tier believed of the tracked subjects.
type Counter struct {
	// Readings taken.
	Readings int64 `json:"readings"`
	// Unknown counts subjects that the tier does not hold.
	Unknown int64 `json:"unknown"`
	// Drifting readings differ from the truth.
	Drifting int64 `json:"drifting"`
	// Drift is the sum of the signed distances to the truth in units.
	Drift int64 `json:"drift"`
	// Size is the sum of the sizes of these distances.
	Size int64 `json:"size"`
	// Worst is the largest distance by size.
	Worst int64 `json:"worst"`
	// StalenessNS is the longest time since a reading agreed with the truth.
	StalenessNS int64 `json:"staleness_ns"`
	// MeanNS is the mean staleness of the readings that ever agreed.
	MeanNS int64 `json:"mean_ns"`
	// Never counts readings that agree with no truth that is remembered.
	Never int64 `json:"never"`
}

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

// Sound reports whether there is a length, and as many counts of each kind as slices.
func (o *OverTime) Sound() bool {
	return o != nil && o.SliceNS > 0 && len(o.Admitted) > 0 && len(o.Rejected) == len(o.Admitted) &&
		len(o.Errors) == len(o.Admitted)
}
