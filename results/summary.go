package results

import (
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// Summary is one strategy over all its rounds.
type Summary struct {
	// Key is the [Run.Key] that the rounds share. It is not stored.
	Key string `json:"-"`
	// Label is how the command line takes the strategy.
	Label string `json:"label"`
	Identity
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Workload is the public name of the workload.
	Workload string `json:"workload"`
	// Params are those of the first round.
	Params  Params `json:"params"`
	setting string
	// Placement is that of the first round; absent in simulations.
	Placement *Placement `json:"placement,omitempty"`
	// Rounds taken in.
	Rounds int `json:"rounds"`
	// Invalid rounds are left out of every correctness figure.
	Invalid int `json:"invalid_rounds"`
	// Partial rounds were interrupted.
	Partial int `json:"partial_rounds"`
	Requests
	// BusyTimeOuts are the time-outs of rounds in which the audit found the machine disturbed.
	BusyTimeOuts int64 `json:"busy_time_outs,omitempty"`
	TimingSummary
	CorrectnessSummary
	// Cost is the median over rounds; keys are those of the worst round, and the
	// probe is the only one there is.
	Cost Cost `json:"cost"`
	// Meter condenses the strategy's own figures, in its order.
	Meter []MeasureSummary `json:"meter,omitempty"`
	// Stored is what was kept in each store in the round that kept the most there.
	Stored []Stored `json:"stored,omitempty"`
	Promises
	// Verdict of all clauses together; "no promise" if none bounds the leak.
	Verdict string `json:"verdict"`
	// LeakVerdict is that of the clauses that bound the leak.
	LeakVerdict string `json:"leak_verdict"`
	// Audit holds every distinct finding once.
	Audit Audit `json:"audit"`
	// Occurrences counts the rounds of each code of a finding.
	Occurrences map[string]int `json:"occurrences"`
	// Paced condenses the open loops at the common rate; absent if there are none.
	Paced *Summary `json:"paced,omitempty"`

	each     map[int]Timing // by round, of those behind the timings
	measured *byte          // identifies the measurement that rounds are numbered in
}

// TimingSummary is the speed over all rounds that happened as planned.
type TimingSummary struct {
	// Timed counts the rounds behind the timings: all that happened as planned.
	Timed int `json:"timed_rounds"`
	// Disturbed counts those of them with a finding that marks the timings.
	Disturbed int `json:"disturbed_rounds"`
	// OthersShare is the share of the processor time that other programs used, as a mean
	// over these rounds; 0 if the system does not tell it.
	OthersShare float64 `json:"others_share,omitempty"`
	// CoreWaitNS is how long a thread waited for a core at most, in nanoseconds, in the rounds in
	// which that may explain the p99; 0 if there are none.
	CoreWaitNS int64 `json:"core_wait_ns,omitempty"`
	// Throughput is decisions per second: the mean over rounds.
	Throughput Figure `json:"throughput_per_s"`
	// Ratio is throughput divided by that of the reference loop of the same round, the
	// mean over rounds, with 0 rounds if there was none.
	Ratio Figure `json:"ratio_to_reference"`
	// Service is the time from the actual start of a request.
	Service Percentiles `json:"service_ns"`
	// Response (open loop only) is the time from the intended start.
	Response *Percentiles `json:"response_ns,omitempty"`
	// Reference is what a bare client's INCR took in the same rounds; absent if
	// there was no reference loop.
	Reference *Percentiles `json:"reference_ns,omitempty"`
	// Lateness (open loop only) holds medians over rounds, and the backlog of the
	// round that ended with the largest.
	Lateness *Lateness `json:"lateness_ns,omitempty"`
	// Saturated counts rounds whose backlog kept growing.
	Saturated int `json:"saturated_rounds"`
	// JobP99 is the p99 of the requests that overlap rounds of a background job, of the job with the largest, as a median
	// over rounds; nil if none has enough of them. Records leave it to the runs, which older ones have without it.
	JobP99 *Figure `json:"-"`
	// PoolWait is the wait for connections; absent if no client tells it.
	PoolWait *PoolWaitSummary `json:"pool_wait,omitempty"`
}

// CorrectnessSummary is how far the decisions of all valid rounds are from the right ones.
type CorrectnessSummary struct {
	// Leak of all valid rounds.
	Leak LeakSummary `json:"leak"`
	// LeakTiers splits its units by the tier that admitted them; see [Correctness.LeakTiers].
	LeakTiers map[string]int64 `json:"leak_tiers,omitempty"`
	// Rolling is the worst round's worst window and the sum of all leaks; absent
	// if no window ended in mid-run.
	Rolling *Rolling `json:"rolling,omitempty"`
	// FalseRejects of all valid rounds. Rounds that are explained add no possible
	// ones beyond their confirmed ones; Explained is set if all are.
	FalseRejects FalseRejects `json:"false_rejects"`
	// Drift holds the worst reading of each tier over all rounds; null if the
	// strategy shows no counter.
	Drift *Drift `json:"drift" jsonschema:"nullable"`
	// Settled is what became of admitted requests; absent if callers settle none.
	Settled *SettlementSummary `json:"settlement,omitempty"`
}

// AtRate is the summary that latency is taken from: that of the open loops at the
// common rate if there are some, and s itself otherwise.
func (s *Summary) AtRate() *Summary {
	if s.Paced != nil {
		return s.Paced
	}
	return s
}

// Overloaded reports whether the strategy could not keep up with the rate of an open loop in
// most rounds: then its response times are those of a queue.
func (s *Summary) Overloaded() bool {
	summary := s.AtRate()
	return 2*summary.Saturated > summary.Timed
}

// Latency is what callers wait for: the response time in open loop, also of one
// next to a closed loop, and the service time if there is only a closed loop.
func (s *Summary) Latency() *Percentiles {
	s = s.AtRate()
	if s.Response != nil {
		return s.Response
	}
	return &s.Service
}

// Percentiles of a latency over all rounds, in nanoseconds.
type Percentiles struct {
	// P50 is the 50th percentile.
	P50 Percentile `json:"p50"`
	// P90 is the 90th percentile.
	P90 Percentile `json:"p90"`
	// P99 is the 99th percentile.
	P99 Percentile `json:"p99"`
	// P999 is the 99.9th percentile.
	P999 Percentile `json:"p999"`
	// P9999 is the 99.99th percentile.
	P9999 Percentile `json:"p9999"`
	// Max of all rounds.
	Max int64 `json:"max"`
	// AtLeast counts operations that had not finished.
	AtLeast int64 `json:"at_least"`
	// Curve is the latency of all rounds together at each of [CurveQuantiles]; nil
	// if a round's histogram was not stored. It is not stored itself, and the
	// merged histogram would take 270 kB for each strategy.
	Curve []int64 `json:"-"`
}

// MeasureSummary is one of a strategy's own figures over all valid rounds.
type MeasureSummary struct {
	// Name, as in the rounds.
	Name string `json:"name"`
	// Unit of the value.
	Unit string `json:"unit"`
	// Kind, as in the rounds.
	Kind string `json:"kind,omitempty" jsonschema:"enum=level,enum=most"`
	// Value of a round.
	Value Figure `json:"value"`
	// PerDecision is the sum of what was counted by the requests that were admitted
	// or rejected; 0 if there were none, and for other kinds.
	PerDecision float64 `json:"per_decision"`
	// PerAdmitted is the same by the requests that were admitted.
	PerAdmitted float64 `json:"per_admitted"`
}

// SettlementSummary adds up all valid rounds.
type SettlementSummary struct {
	// Commits that succeeded.
	Commits int64 `json:"commits"`
	// Refunds after failed work and deletions.
	Refunds int64 `json:"refunds"`
	// Abandoned requests were never settled.
	Abandoned int64 `json:"abandoned"`
	// Errors counts commits and refunds that ended in an error.
	Errors int64 `json:"errors"`
	// OverrunUnits is what commits used beyond their reservations.
	OverrunUnits int64 `json:"overrun_units,omitempty"`
	// ChargedForNothing are units of failed work that a strategy without refunds keeps.
	ChargedForNothing int64 `json:"charged_for_nothing_units,omitempty"`
	// Service is the time from the start of a commit or refund to its answer.
	Service Percentiles `json:"service_ns"`
}

// LeakSummary is the leak of all valid rounds.
type LeakSummary struct {
	Leak
	// PossiblePctOfLimit is Possible in percent of the limit times the trials; if the
	// limit changes, of the first one.
	PossiblePctOfLimit float64 `json:"possible_pct_of_limit"`
}

// Counts reports whether any round's correctness figures count.
func (s *Summary) Counts() bool { return s.Rounds > s.Invalid }

// AdmittedPct is the share of admitted among issued requests, in percent.
func (s *Summary) AdmittedPct() float64 { return stat.Percent(s.Admitted, s.Issued) }

// DegradedPct is the share of decisions made without their store, in percent.
func (s *Summary) DegradedPct() float64 { return stat.Percent(s.Degraded, s.Admitted+s.Rejected) }

// AtRest is the drift of the worst tier while nothing was in flight, and AfterJobs
// that after background jobs had run until idle. ok is false if no such
// reading was taken.
func (s *Summary) AtRest() (drift TierDrift, ok bool) { return s.Drift.Worst("rest") }

// AfterJobs is like [Summary.AtRest], after background jobs have run until idle.
func (s *Summary) AfterJobs() (drift TierDrift, ok bool) { return s.Drift.Worst("after-jobs") }

// Worst is the drift of the worst tier at a moment; ok is false if none was read then. There may be no drift at all.
func (d *Drift) Worst(at string) (worst TierDrift, ok bool) {
	if d == nil {
		return worst, false
	}
	for _, drift := range d.Tiers {
		if drift.At == at && drift.Readings > 0 && (!ok || format.Magnitude(drift.Units) > format.Magnitude(worst.Units)) {
			worst = drift
			ok = true
		}
	}
	return worst, ok
}

// Lost is how many units the worst tier lost, in all rounds, nothing in flight; ok is false if none was read then.
func (d *Drift) Lost() (n float64, ok bool) {
	drift, ok := d.Worst("rest")
	return float64(drift.Lost), ok
}

// minStalls is how many separate events have to be behind a percentile.
const minStalls = 5
