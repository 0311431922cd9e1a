package results

import "github.com/quotabench/quotabench/internal/kit/stat"

// Waiting says how long, during a pass, threads were ready to run and had no core,
// and what else kept this program waiting. None of it is the strategy's doing.
type Waiting struct {
	// EveryNS is the distance between two readings in nanoseconds.
	EveryNS int64 `json:"every_ns"`
	// Known is false if the system does not tell how long threads wait.
	Known bool `json:"known"`
	// Harness is how many threads of this program were waiting, as a mean over time.
	Harness float64 `json:"harness"`
	// Stores is the same for the servers that were started for the run.
	Stores float64 `json:"stores"`
	// Stolen is the share of processor time that went to other machines of the host.
	Stolen float64 `json:"stolen"`
	// HiccupP99 is how late a thread woke up that asked to be woken every EveryNS, in
	// nanoseconds: the 99th percentile.
	HiccupP99 int64 `json:"hiccup_p99_ns"`
	// HiccupMax is the largest such lateness.
	HiccupMax int64 `json:"hiccup_max_ns"`
	// GoSchedP99 is how long goroutines were ready to run before Go's scheduler ran
	// them, in nanoseconds: the 99th percentile.
	GoSchedP99 int64 `json:"go_sched_p99_ns"`
	// GoSchedMax is the longest such wait.
	GoSchedMax int64 `json:"go_sched_max_ns"`
	// GCPauses counts the stops of all goroutines by Go's garbage collector.
	GCPauses int64 `json:"gc_pauses"`
	// GCPauseMax is the longest of them in nanoseconds.
	GCPauseMax int64 `json:"gc_pause_max_ns"`
	// Slices are equal parts of the pass, in order, at most 20.
	Slices []WaitingSlice `json:"slices"`
}

// WaitingSlice is a part of a pass.
type WaitingSlice struct {
	// Harness is how many threads of this program were waiting, as a mean over time.
	Harness float64 `json:"harness"`
	// Stores is the same for the servers that were started for the run.
	Stores float64 `json:"stores"`
	// LongestNS is the longest that one thread waited between two readings.
	LongestNS int64 `json:"longest_ns"`
	// HiccupNS is the largest lateness of a reading.
	HiccupNS int64 `json:"hiccup_ns"`
}

// Waited is, for each percentile of a latency, the share of the moments at or above
// it in which a thread waited for a core for long enough to be the reason; -1 if
// that is not known.
type Waited struct {
	// P90 belongs to the 90th percentile.
	P90 float64 `json:"p90" parts:"max"`
	// P99 belongs to the 99th percentile.
	P99 float64 `json:"p99" parts:"max"`
	// P999 belongs to the 99.9th percentile.
	P999 float64 `json:"p999" parts:"max"`
	// P9999 belongs to the 99.99th percentile.
	P9999 float64 `json:"p9999" parts:"max"`
}

// maxWaited is the share of such moments above which a round counts in
// [Percentile.Waited].
const maxWaited = 0.5

// WaitedForCore reports whether waiting for a core may explain the percentile of one of
// [stat.NamedQuantiles].
func (l *Latency) WaitedForCore(q float64) bool { return l.Waited.at(q) > maxWaited }

// at is the share for one of [stat.NamedQuantiles]; -1 if it is not known.
func (w *Waited) at(q float64) float64 {
	if w == nil {
		return -1
	}
	switch q {
	case 0.9:
		return w.P90
	case 0.99:
		return w.P99
	case 0.999:
		return w.P999
	case 0.9999:
		return w.P9999
	}
	return -1
}

// PoolWait is how long callers waited for a connection of a store's pools during a
// pass, over all instances. Those of background jobs are among them.
type PoolWait struct {
	// Store by its name.
	Store string `json:"store"`
	// Taken counts connections that were taken from a pool.
	Taken int64 `json:"taken"`
	// Waited counts those for which the caller had to wait, since all were in use.
	Waited int64 `json:"waited"`
	// WaitNS is the sum of these waits in nanoseconds.
	WaitNS int64 `json:"wait_ns"`
}

// PoolWaitSummary is the wait for connections of all stores over valid rounds.
type PoolWaitSummary struct {
	// MeanNS is the wait of all commands of one request together, in nanoseconds: the
	// sum of waits by the requests.
	MeanNS Figure `json:"mean_ns"`
	// WaitedPct is the share of connections taken that had to be waited for, in percent.
	WaitedPct float64 `json:"waited_pct"`
}

// poolWaits condenses the waits of valid rounds.
func (s *Summary) poolWaits(runs []*Run) {
	var means []float64
	var taken, waited int64
	for _, run := range runs {
		if run.PoolWait == nil || run.Issued == 0 {
			continue
		}
		total := int64(0)
		for _, wait := range run.PoolWait {
			total += wait.WaitNS
			taken += wait.Taken
			waited += wait.Waited
		}
		means = append(means, float64(total)/float64(run.Issued))
	}
	if means != nil {
		s.PoolWait = &PoolWaitSummary{MeanNS: OverRounds(means), WaitedPct: stat.Percent(waited, taken)}
	}
}

// longest is how long one thread waited at most, in nanoseconds.
func (w *Waiting) longest() (ns int64) {
	if w == nil {
		return 0
	}
	for _, slice := range w.Slices {
		ns = max(ns, slice.LongestNS)
	}
	return ns
}
