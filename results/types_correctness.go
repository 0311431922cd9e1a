package results

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota"
)

// Leak is what was admitted over the limit. A trial is a window of one subject of
// which more than the limit was asked, with at least that many answers.
type Leak struct {
	// Units is certain: no placement of the decisions in time explains less. Under
	// rolling windows it is a lower bound.
	Units int64 `json:"units"`
	// Possible is the most units that some placement explains.
	Possible int64 `json:"possible"`
	// PctOfLimit is Units in percent of the limit times the trials; if the limit
	// changes, of the first one.
	PctOfLimit float64 `json:"pct_of_limit" parts:"-"`
	// PctOfOverQuota is Units in percent of OverQuotaUnits.
	PctOfOverQuota float64 `json:"pct_of_over_quota_units" parts:"-"`
	// OverQuotaUnits were asked for over the limit.
	OverQuotaUnits int64 `json:"over_quota_units"`
	// Requests are those that would have had to be rejected to avoid the leak.
	Requests int64 `json:"requests"`
	// WorstUnits is the largest leak of one subject and window.
	WorstUnits int64 `json:"worst_units" parts:"max"`
	// Subjects that leaked.
	Subjects int64 `json:"subjects"`
	// Trials counts windows of which more than the limit was asked.
	Trials int64 `json:"trials"`
	// LeakedTrials are those of them that leaked, never more than Trials.
	LeakedTrials int64 `json:"leaked_trials"`
	// MedianUnits is the median leak per trial.
	MedianUnits float64 `json:"median_units" parts:"-"`
	// Excursions (standing quotas only) are stretches of time above the limit.
	Excursions int64 `json:"excursions,omitempty"`
	// UnitSeconds (standing quotas only) is the area of the excursions: units above
	// the limit times seconds.
	UnitSeconds float64 `json:"unit_seconds,omitempty"`
}

// FalseRejects are requests rejected although there was room.
type FalseRejects struct {
	// Count of the confirmed ones: there was room at every moment of the request.
	Count int64 `json:"count"`
	// Possible ones, the confirmed ones included.
	Possible int64 `json:"possible"`
	// Units of the confirmed ones.
	Units int64 `json:"units"`
	// NeverGiven are refused units that fitted besides all that was admitted. Room counts once, and
	// in Units for every attempt. It is nil unless windows follow each other or are rolling.
	NeverGiven *int64 `json:"never_given_units,omitempty"`
	// LongestNS is for how long, at most, one tier of an instance answered one subject with nothing but confirmed
	// ones: from the call of the first to the reply of the last.
	LongestNS int64 `json:"longest_ns,omitempty" parts:"max"`
	// LongestTier is that tier's name.
	LongestTier string `json:"longest_tier,omitempty"`
	// PctOfValid is Count in percent of the valid requests, for which there was room when they
	// were made: Count + admitted - leaked ones. A unit of room counts again for every attempt.
	PctOfValid float64 `json:"pct_of_valid_requests" parts:"-"`
	// Explained is set if some order of the operations, in keeping with what
	// every caller saw, has no wrong rejection: then possible ones mean nothing.
	Explained bool `json:"explained" parts:"-"`
}

// Drift is the signed distance, in units, between what a tier believes and what
// callers were told; positive means that it believes too much was used.
type Drift struct {
	// Units is the drift of the worst reading at rest.
	Units int64 `json:"units"`
	// PctOfLimit is that reading in percent of the limit in force when it was taken.
	PctOfLimit float64 `json:"pct_of_limit"`
	// PctOfUsage is that reading in percent of the actual usage.
	PctOfUsage float64 `json:"pct_of_usage"`
	// Tiers holds the drift by tier and moment.
	Tiers []TierDrift `json:"tiers"`
}

// TierDrift is the drift of one tier at one moment.
type TierDrift struct {
	// Tier that was read.
	Tier string `json:"tier"`
	// At is "rest" (nothing in flight) or "after-jobs" (background jobs have
	// also run until idle).
	At string `json:"at" jsonschema:"enum=rest,enum=after-jobs"`
	// Units is the drift of the worst reading.
	Units int64 `json:"units" parts:"-"`
	// Total is the sum of the sizes over all readings.
	Total int64 `json:"total"`
	// PctOfLimit is Units in percent of the limit in force at the reading.
	PctOfLimit float64 `json:"pct_of_limit" parts:"-"`
	// PctOfUsage is Units in percent of the actual usage.
	PctOfUsage float64 `json:"pct_of_usage" parts:"-"`
	// Width of the expected interval of the worst reading.
	Width int64 `json:"width" parts:"-"`
	// Readings taken.
	Readings int64 `json:"readings"`
	// Unknown counts readings of subjects that the tier does not hold.
	Unknown int64 `json:"unknown"`
	// Drifting counts readings outside of their expected interval.
	Drifting int64 `json:"drifting"`
	// Surplus is what the tier contains by design, e.g. rejected attempts, and
	// has been subtracted.
	Surplus int64 `json:"surplus"`
	// Stranded units are counted, and held by no caller: those of operations that failed or
	// whose caller was killed.
	Stranded int64 `json:"stranded,omitempty"`
	// Lost units were admitted, as their callers were told, and are counted no more.
	Lost int64 `json:"lost,omitempty"`
	// SettledNS is how long the jobs took to become idle (after-jobs only), in
	// nanoseconds.
	SettledNS int64 `json:"settled_ns,omitempty" parts:"max"`
}

// Cost is per decision, a sample over the whole run.
type Cost struct {
	ProbeCost
	// KeysAtEnd are left in Redis.
	KeysAtEnd int64 `json:"keys_at_end"`
	// KeysWithoutTTL are those of them that never expire.
	KeysWithoutTTL int64 `json:"keys_without_ttl"`
	// ClientCPU is processor time of this process in nanoseconds; 0 if unknown.
	ClientCPU float64 `json:"client_cpu_ns"`
	// RedisCPU is that of Redis servers that tell theirs.
	RedisCPU float64 `json:"redis_cpu_ns"`
	// PostgresCPU is that of PostgreSQL servers that tell theirs.
	PostgresCPU float64 `json:"postgres_cpu_ns"`
	// RunQueue is how long this process' threads were ready to run and did not,
	// in nanoseconds; 0 if unknown.
	RunQueue float64 `json:"run_queue_ns"`
	// Probe is exact, and was measured by itself: one caller, one request at a
	// time. Only the first round has it.
	Probe *Probe `json:"probe,omitempty"`
}

// Probe is the exact cost of single decisions.
type Probe struct {
	// First is the subject's first request.
	First ProbeCost `json:"first"`
	// Admitted is the mean over later admitted requests; absent if there were
	// none.
	Admitted *ProbeCost `json:"admitted,omitempty"`
	// Rejected is the mean over rejected requests; absent if there were none.
	Rejected *ProbeCost `json:"rejected,omitempty"`
	// Disturbed is set if several probes counted differently, and in each of them a connection was
	// lost or opened, or a statement prepared. These are the least counts: a decision costs no
	// more.
	Disturbed bool `json:"disturbed,omitempty"`
}

// parts of a probe are the costs of each kind of decision; nil for those that there were not.
func (p *Probe) parts() []*ProbeCost { return []*ProbeCost{&p.First, p.Admitted, p.Rejected} }

// SameCounts reports whether two probes counted the same commands, statements and round trips.
func (p *Probe) SameCounts(probe *Probe) bool {
	theirs := probe.parts()
	for i, mine := range p.parts() {
		if (mine == nil) != (theirs[i] == nil) {
			return false
		}
		if mine != nil && mine.counts() != theirs[i].counts() {
			return false
		}
	}
	return true
}

// Least has the lower of each figure of two probes. The other may be nil.
func (p *Probe) Least(probe *Probe) *Probe {
	if probe == nil {
		return p
	}
	return &Probe{First: *p.First.least(&probe.First), Admitted: p.Admitted.least(probe.Admitted),
		Rejected: p.Rejected.least(probe.Rejected)}
}

// counts of the decision, without bytes and allocations, which differ by chance.
func (c *ProbeCost) counts() [4]float64 {
	return [4]float64{c.Commands, c.RoundTrips, c.SQL, c.ModelSQL}
}

// least has the lower of each figure. Either may be nil.
func (c *ProbeCost) least(cost *ProbeCost) *ProbeCost {
	if c == nil || cost == nil {
		return cmp.Or(c, cost)
	}
	return &ProbeCost{
		Commands: min(c.Commands, cost.Commands), RoundTrips: min(c.RoundTrips, cost.RoundTrips),
		Bytes: min(c.Bytes, cost.Bytes),
		SQL:   min(c.SQL, cost.SQL), ModelSQL: min(c.ModelSQL, cost.ModelSQL), Allocs: min(c.Allocs, cost.Allocs),
	}
}

// ProbeCost is the cost of one decision.
type ProbeCost struct {
	// Commands to Redis.
	Commands float64 `json:"commands"`
	// RoundTrips to any store.
	RoundTrips float64 `json:"round_trips"`
	// Bytes in both directions.
	Bytes float64 `json:"bytes"`
	// SQL statements.
	SQL float64 `json:"sql"`
	// ModelSQL are statements that went to the in-process model instead.
	ModelSQL float64 `json:"model_sql"`
	// Allocs are allocations of the whole process.
	Allocs float64 `json:"allocs"`
}

// PerDecision is how many commands and statements a decision takes.
func (c *ProbeCost) PerDecision() float64 { return c.Commands + c.SQL + c.ModelSQL }

// Rolling is a run of tumbling windows judged as rolling ones of the same length.
type Rolling struct {
	// WorstUnits were admitted in the worst rolling window.
	WorstUnits int64 `json:"worst_units" parts:"max"`
	// Multiple is WorstUnits by the limit.
	Multiple float64 `json:"multiple" parts:"max"`
	// Units is the certain leak over the limit, in disjoint windows.
	Units int64 `json:"units"`
	// Possible leak in units.
	Possible int64 `json:"possible"`
}

// Settlement is what became of admitted requests that callers settle.
type Settlement struct {
	// Commits that succeeded.
	Commits int64 `json:"commits"`
	// Refunds after failed work and deletions.
	Refunds int64 `json:"refunds"`
	// Abandoned requests were never settled.
	Abandoned int64 `json:"abandoned"`
	// Errors counts commits and refunds that ended in an error.
	Errors int64 `json:"errors"`
	// OverrunUnits is what commits used beyond their reservations. It is no leak.
	OverrunUnits int64 `json:"overrun_units,omitempty"`
	// ChargedForNothing are units of failed work that a strategy without refunds keeps.
	ChargedForNothing int64 `json:"charged_for_nothing_units,omitempty"`
	// Service is the time from the start of a commit or refund to its answer.
	Service Latency `json:"service_ns"`
}

// Clause is a declared guarantee, evaluated.
type Clause struct {
	// Property that is bounded: "leak" or "false-reject".
	Property string `json:"property"`
	// Formula is the bound for people, with its condition; L is the limit.
	Formula string `json:"formula"`
	// Condition is when the formula holds, e.g. "while no sync round has run"; empty if it always does.
	Condition string `json:"condition,omitempty"`
	// Source names the design record that promises it; empty for what the strategy itself declares.
	Source string `json:"source,omitempty"`
	// Says is how the design record puts it.
	Says string `json:"says,omitempty"`
	// Tolerates are the faults under which the bound is promised as well.
	Tolerates []string `json:"tolerates,omitempty"`
	// Bound is the units by which one subject and window may break the property;
	// 2^63-1 if there is no bound, or if it is all that is asked for.
	Bound int64 `json:"bound"`
	// Certain is the worst certain amount measured.
	Certain int64 `json:"certain"`
	// Possible is the worst possible amount measured.
	Possible int64 `json:"possible"`
	// Verdict: kept needs the possible amount within the bound, broken the certain one
	// beyond it. A bound of 2^63-1 promises nothing.
	Verdict string `json:"verdict" jsonschema:"enum=kept,enum=broken,enum=not exercised,enum=undecided,enum=no promise"`
}

// The verdicts of a clause.
const (
	Kept         = "kept"
	Broken       = "broken"
	NotExercised = "not exercised"
	Undecided    = "undecided"
	NoPromise    = "no promise"
)

// Decide sets the verdict that follows from the bound and what was measured.
// exercised says whether the run could have broken the clause.
func (c *Clause) Decide(exercised bool) {
	switch {
	case c.Bound == math.MaxInt64:
		c.Verdict = NoPromise
	case c.Certain > c.Bound:
		c.Verdict = Broken
	case !exercised:
		c.Verdict = NotExercised
	case c.Possible <= c.Bound:
		c.Verdict = Kept
	default:
		c.Verdict = Undecided
	}
}

// AllowsNone reports whether a declared clause allows no unit of the property.
func (r *Run) AllowsNone(property string) bool {
	return slices.ContainsFunc(r.Guarantee, func(clause Clause) bool {
		return clause.Property == property && clause.Bound == 0
	})
}

// Said is the verdict, and if it is broken by how many units.
func (c *Clause) Said(unit string) string {
	if c.Verdict == Broken {
		return "broken by " + format.Units(c.Certain-c.Bound, unit)
	}
	return c.Verdict
}

// Claimed is the source with what it says.
func (c *Clause) Claimed() string { return format.Join(": ", c.Source, c.Says) }

// ErrorKinds counts requests without a decision by what kept them from one.
type ErrorKinds struct {
	// Contention: others changed the same in the meantime.
	Contention int64 `json:"contention"`
	// TimeOuts: there was no answer in the time that was given.
	TimeOuts int64 `json:"time_outs"`
	// Killed: the caller was killed within the decision, as planned.
	Killed int64 `json:"killed,omitempty"`
	// Store: the store was not there, or refused what any client may ask of it.
	Store int64 `json:"store"`
	// Other errors.
	Other int64 `json:"other"`
}

// Of is the count of one kind.
func (k *ErrorKinds) Of(kind quota.ErrorKind) *int64 {
	switch kind {
	case quota.ErrorContention:
		return &k.Contention
	case quota.ErrorTimeout:
		return &k.TimeOuts
	case quota.ErrorStore:
		return &k.Store
	case "killed":
		return &k.Killed
	}
	return &k.Other
}

// Add counts those of kinds too.
func (k *ErrorKinds) Add(kinds ErrorKinds) { stat.AddFields(k, &kinds) }

// Total counts all of them.
func (k ErrorKinds) Total() int64 { return k.Contention + k.TimeOuts + k.Store + k.Other + k.Killed }

// OrNil is nil if nothing was counted.
func (k ErrorKinds) OrNil() *ErrorKinds {
	if k.Total() == 0 {
		return nil
	}
	return &k
}
