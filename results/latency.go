package results

import "github.com/quotabench/quotabench/internal/kit/stat"

// Latency is what callers of this loop wait for: the response time in open loop, the
// service time in closed loop. [Run.Paced] has its own.
func (r *Run) Latency() *Latency {
	if r.Response != nil {
		return r.Response
	}
	return &r.Service
}

// Latency is a distribution of durations in nanoseconds, whole and in parts.
type Latency struct {
	Distribution
	// Parts split the distribution by outcome and deciding tier. Each value is
	// stored once: if there are parts they hold the histograms, and the whole's
	// is the sum of theirs.
	Parts []LatencyPart `json:"parts,omitempty"`
	// Waited says which percentiles waiting for a core could explain.
	Waited *Waited `json:"waited,omitempty"`
}

// LatencyPart is the latency of one outcome at one tier.
type LatencyPart struct {
	// Outcome is what became of the requests.
	Outcome string `json:"outcome" jsonschema:"enum=admitted,enum=rejected,enum=error"`
	// Tier that decided.
	Tier string `json:"tier,omitempty"`
	Distribution
}

// JobLatency tells requests whose call or answer lies within a round of a job, or on both sides
// of it, from the others. Times are service times, all outcomes together.
type JobLatency struct {
	// Job is its name.
	Job string `json:"job"`
	// Rounds that ran during the pass, on all instances.
	Rounds int64 `json:"rounds"`
	// LongestNS is the longest of them.
	LongestNS int64 `json:"longest_ns"`
	// During has the requests that overlap a round.
	During Distribution `json:"during_ns"`
	// Others has all others.
	Others Distribution `json:"others_ns"`
}

// JobP99 is the p99 of the requests that overlap rounds of a background job, in nanoseconds, of the job with the
// largest. ok is false if there are too few of them.
func (r *Run) JobP99() (ns float64, ok bool) {
	for i := range r.Jobs {
		if distribution := &r.Jobs[i].During; distribution.Samples >= stat.MinSamples(0.99) {
			ns = max(ns, float64(distribution.P99))
			ok = true
		}
	}
	return ns, ok
}

// Distribution of durations in nanoseconds. Percentiles are given whether or not
// there are enough samples for them.
type Distribution struct {
	// Samples counts all values, those in AtLeast and OutOfRange included.
	Samples int64 `json:"samples"`
	// P50 is the 50th percentile.
	P50 int64 `json:"p50"`
	// P90 is the 90th percentile.
	P90 int64 `json:"p90"`
	// P99 is the 99th percentile.
	P99 int64 `json:"p99"`
	// P999 is the 99.9th percentile.
	P999 int64 `json:"p999"`
	// P9999 is the 99.99th percentile.
	P9999 int64 `json:"p9999"`
	// Max is the largest value.
	Max int64 `json:"max"`
	// StallsP99 counts separate events (more than 10 ms apart) behind the samples
	// of this distribution at or above its p99; -1 if unknown.
	StallsP99 int `json:"stalls_p99"`
	// StallsP999 is the same for p99.9.
	StallsP999 int `json:"stalls_p999"`
	// AtLeast counts operations that had not finished: they entered with the
	// time they had taken so far.
	AtLeast int64 `json:"at_least,omitempty"`
	// OutOfRange counts values that the histogram could not hold. Percentiles
	// take them as longer than an hour and never read above it.
	OutOfRange int64 `json:"out_of_range,omitempty"`
	// Histogram is an HDR histogram, 1 ns to 1 h in 3 digits, V2 compressed
	// encoding, base64.
	Histogram string `json:"histogram,omitempty"`
}

// Lateness of releases in open loop, in nanoseconds.
type Lateness struct {
	// PacerP50 is the median lateness of the pacer itself.
	PacerP50 int64 `json:"pacer_p50" parts:"max"`
	// PacerP99 is its 99th percentile.
	PacerP99 int64 `json:"pacer_p99" parts:"max"`
	// WorkerP50 is the median wait for a free worker.
	WorkerP50 int64 `json:"worker_p50" parts:"max"`
	// WorkerP99 is its 99th percentile.
	WorkerP99 int64 `json:"worker_p99" parts:"max"`
	// BacklogHalf counts requests released and not yet started, half way through
	// the schedule.
	BacklogHalf int64 `json:"backlog_half"`
	// BacklogEnd is the same at its end.
	BacklogEnd int64 `json:"backlog_end"`
	// Saturated is set if the backlog kept growing: the rate was too high.
	Saturated bool `json:"saturated"`
}
