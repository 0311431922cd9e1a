package results

import (
	"math"

	"github.com/quotabench/quotabench/results/internal/format"
)

// Summary is one strategy over all its rounds.
type Summary struct {
	// Key is the [Run.Key] that the rounds share; Label is how the command line
	// takes the strategy.
	Key, Label       string
	Strategy, Form   string
	Policy, Workload string
	// Params are those of the first round.
	Params  Params
	setting string

	// Rounds taken in. Invalid ones are left out of every correctness figure.
	// Untimed ones (their timings do not count) and Partial ones are left out of
	// timings as long as others remain.
	Rounds, Invalid, Untimed, Partial int

	// Counts of requests over all valid rounds.
	Issued, Admitted, Rejected, Errors, Degraded int64
	FirstError                                   string

	// Timed counts the rounds behind the timings. TimingsCount is false where all
	// rounds were struck and timings are shown for what they are worth.
	Timed        int
	TimingsCount bool
	// ResponseCounts is false where in addition no round's response times count;
	// service times and throughput may do so all the same.
	ResponseCounts bool
	// Throughput is decisions per second; Ratio is throughput by that of the
	// reference loop of the same round, with 0 rounds where there was none.
	Throughput, Ratio Figure
	// Latency is the response time in open loop and the service time in closed
	// loop; Service is set in open loop only.
	Latency Percentiles
	Service *Percentiles
	// Lateness (open loop only) holds medians over rounds, and the backlog of the
	// round that ended with the largest. Saturated counts rounds whose backlog
	// kept growing.
	Lateness  *Lateness
	Saturated int

	Leak LeakSummary
	// Rolling is the worst round's worst window and the sum of all leaks; nil where
	// no window ended in mid-run.
	Rolling *Rolling
	// FalseRejects of all valid rounds. Rounds that are explained add no possible
	// ones beyond their certain ones; Explained is set where all are.
	FalseRejects FalseRejects
	// Drift holds the worst reading of each tier over all rounds; nil where the
	// strategy shows no counter.
	Drift *Drift
	// Settled is what became of admitted requests; nil where callers settle none.
	Settled *SettlementSummary
	// Cost is the median over rounds; keys are those of the worst round, and the
	// probe is the only one there is.
	Cost Cost
	// Guarantee holds the declared clauses with the worst amounts of all rounds.
	Guarantee []Clause
	// Verdict of all clauses together, LeakVerdict of those that bound the leak;
	// empty where there is none.
	Verdict, LeakVerdict string
	// Audit holds every distinct finding once; Occurrences counts the rounds of
	// each code.
	Audit       Audit
	Occurrences map[string]int
}

// Percentiles of a latency over all rounds.
type Percentiles struct {
	P50, P90, P99, P999, P9999 Percentile
	// Max in nanoseconds, of all rounds.
	Max     int64
	AtLeast int64
	// Curve is the latency of all rounds together, in nanoseconds, at each of
	// [CurveQuantiles]; nil where a round's histogram was not stored. The merged
	// histogram itself would take 270 kB for each strategy.
	Curve []int64
}

// SettlementSummary adds up all valid rounds. Latency is that of commits and
// refunds.
type SettlementSummary struct {
	Commits, Refunds, Abandoned, Errors int64
	Latency                             Percentiles
}

// LeakSummary is the leak of all valid rounds.
type LeakSummary struct {
	Leak
	// PossiblePct is Possible in percent of the limit times the crossings.
	PossiblePct float64
}

// RateBound is the largest share of crossings that may leak, with 95 % confidence,
// given that none of n did: the rule of three. It is 1 where n is below 3.
func RateBound(n int64) float64 {
	if n < 3 {
		return 1
	}
	return 3 / float64(n)
}

// Counts reports whether any round's correctness figures count.
func (s *Summary) Counts() bool { return s.Rounds > s.Invalid }

// AdmittedPct is the share of admitted among issued requests, in percent.
func (s *Summary) AdmittedPct() float64 { return Percent(s.Admitted, s.Issued) }

// DegradedPct is the share of decisions made without their store, in percent.
func (s *Summary) DegradedPct() float64 { return Percent(s.Degraded, s.Admitted+s.Rejected) }

// AtRest is the drift of the worst tier while nothing was in flight, and AfterJobs
// that after background jobs had run until idle. ok is false where no such
// reading was taken.
func (s *Summary) AtRest() (t TierDrift, ok bool) { return s.worstTier("rest") }

// AfterJobs is like [Summary.AtRest], after background jobs have run until idle.
func (s *Summary) AfterJobs() (t TierDrift, ok bool) { return s.worstTier("after-jobs") }

func (s *Summary) worstTier(at string) (worst TierDrift, ok bool) {
	if s.Drift == nil {
		return worst, false
	}
	for _, t := range s.Drift.Tiers {
		if t.At == at && t.Readings > 0 && (!ok || format.Magnitude(t.Units) > format.Magnitude(worst.Units)) {
			worst, ok = t, true
		}
	}
	return worst, ok
}

// Percent is part in percent of whole, and 0 where there is no whole.
func Percent[T int64 | float64](part, whole T) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// minSamples is how many samples it takes for the largest to lie above the
// quantile q in 97.5 % of cases: 368 for p99, 3,688 for p99.9, 36,888 for p99.99.
func minSamples(q float64) int64 { return int64(-math.Log(0.025) / (1 - q)) }

// minStalls is how many separate events have to be behind a percentile.
const minStalls = 5
