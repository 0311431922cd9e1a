package codes

// The two ways to issue requests.
const (
	// ClosedLoop: each worker waits for its answer before it asks again.
	ClosedLoop = "closed"
	// OpenLoop: requests start when they are due, whatever the answers do.
	OpenLoop = "open"
)

// Status of a percentile.
type Status string

// The states of a percentile. Only of the first two is Value a percentile.
const (
	// Pooled: Value is the quantile of all rounds' samples together.
	Pooled Status = "pooled"
	// PerRound: histograms were not stored, Value is the median of the rounds.
	PerRound Status = "per round"
	// TooFew: even all rounds together have too few samples. Value is the
	// largest of them, which the percentile is likely to exceed.
	TooFew Status = "too few samples"
	// NoSamples: nothing was measured.
	NoSamples Status = "no samples"
)
