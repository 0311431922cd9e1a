package results

// Series is how a run develops over virtual time. Counts are totals since the
// start, as callers were told; leak and false rejects are those that are certain
// by then, and where requests lie across a boundary the run's verdict knows more.
type Series struct {
	Strategy string `json:"strategy"`
	Unit     string `json:"unit"`
	// Tracked is how many subjects' counters are read at each sample.
	Tracked int      `json:"tracked"`
	Tiers   []string `json:"tiers"` // that decided, in the order of Sample.Hits
	// Counters are the tiers that were read, in the order of Sample.Counters.
	Counters []string `json:"counters"`
	Samples  []Sample `json:"samples"`
	// Outages are planned ones.
	Outages []Span `json:"outages,omitempty"`
}

// Span is when a store was away, since the start.
type Span struct {
	Store  string `json:"store"`
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
}

// Sample is one moment of a series.
type Sample struct {
	AtNS     int64 `json:"at_ns"` // since the start
	Issued   int64 `json:"issued"`
	Admitted int64 `json:"admitted"`
	Rejected int64 `json:"rejected"`
	Errors   int64 `json:"errors"`
	InFlight int64 `json:"in_flight"`
	// Usage is what all subjects hold in the window in force, in units.
	Usage int64 `json:"usage"`
	// Fill is what of it subjects held at the start.
	Fill         int64 `json:"fill"`
	Leak         int64 `json:"leak"` // units
	FalseRejects int64 `json:"false_rejects"`
	// Hits are decisions by tier.
	Hits     []int64   `json:"hits"`
	Counters []Counter `json:"counters"`
}

// Counter is what one tier believed of the tracked subjects.
type Counter struct {
	Readings int64 `json:"readings"`
	Unknown  int64 `json:"unknown"` // subjects that the tier does not hold
	Drifting int64 `json:"drifting"`
	// Drift is the sum of the signed distances to the truth, Size that of their
	// sizes, Worst the largest by size; in units.
	Drift int64 `json:"drift"`
	Size  int64 `json:"size"`
	Worst int64 `json:"worst"`
	// StalenessNS is the longest time since a reading agreed with the truth, and
	// MeanNS the mean over the readings that ever did. Never counts those that
	// agree with no truth that is remembered.
	StalenessNS int64 `json:"staleness_ns"`
	MeanNS      int64 `json:"mean_ns"`
	Never       int64 `json:"never"`
}
