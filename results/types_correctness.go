package results

import "slices"

// Leak is what was admitted over the limit, in units.
type Leak struct {
	// Units is certain: no placement of the decisions in time explains less.
	Units int64 `json:"units"`
	// Possible is the most that some placement explains.
	Possible int64 `json:"possible"`
	// Pct is Units in percent of the limit times the windows that crossed it.
	Pct float64 `json:"pct"`
	// PctOfOver is Units in percent of the units asked for over the limit.
	PctOfOver float64 `json:"pct_of_over"`
	// OverUnits were asked for over the limit, and Requests are those that would
	// have had to be rejected to avoid the leak.
	OverUnits  int64 `json:"over_units"`
	Requests   int64 `json:"requests"`
	WorstUnits int64 `json:"worst_units"` // of one subject and window
	Subjects   int64 `json:"subjects"`    // that leaked
	Violations int64 `json:"violations"`  // subject-windows (standing: excursions) that leaked
	// Crossings counts subject-windows of which more than the limit was asked,
	// with at least that many answers.
	Crossings   int64   `json:"crossings"`
	MedianUnits float64 `json:"median_units"` // leak per crossing
}

// FalseRejects are requests rejected although there was room.
type FalseRejects struct {
	Count    int64 `json:"count"` // certain
	Possible int64 `json:"possible"`
	Units    int64 `json:"units"` // certain
	// Pct is Count in percent of Count + admitted - leaked requests.
	Pct float64 `json:"pct"`
	// Explained is set where some order of the operations, in keeping with what
	// every caller saw, has no wrong rejection: then possible ones mean nothing.
	Explained bool `json:"explained"`
}

// Drift is the signed distance, in units, between what a tier believes and what
// callers were told; positive means that it believes too much was used.
type Drift struct {
	// Units, PctOfLimit and PctOfUsage are those of the worst reading at rest.
	Units      int64       `json:"units"`
	PctOfLimit float64     `json:"pct_of_limit"`
	PctOfUsage float64     `json:"pct_of_usage"`
	Tiers      []TierDrift `json:"tiers"`
}

// TierDrift is the drift of one tier.
type TierDrift struct {
	Tier string `json:"tier"`
	// At is "rest" (nothing in flight) or "after-jobs" (background jobs have
	// also run until idle).
	At         string  `json:"at"`
	Units      int64   `json:"units"` // of the worst reading
	Total      int64   `json:"total"` // sum of the sizes over all readings
	PctOfLimit float64 `json:"pct_of_limit"`
	PctOfUsage float64 `json:"pct_of_usage"` // worst reading
	Width      int64   `json:"width"`        // of the expected interval, of the worst reading
	Readings   int64   `json:"readings"`
	Unknown    int64   `json:"unknown"` // readings of subjects that the tier does not hold
	Drifting   int64   `json:"drifting"`
	// Surplus is what the tier contains by design, e.g. rejected attempts, and
	// has been subtracted.
	Surplus int64 `json:"surplus"`
	// SettledNS is how long the jobs took to become idle (after-jobs only).
	SettledNS int64 `json:"settled_ns,omitempty"`
}

// Cost is per decision, a sample over the whole run.
type Cost struct {
	Commands   float64 `json:"commands"`
	RoundTrips float64 `json:"round_trips"`
	Bytes      float64 `json:"bytes"`
	SQL        float64 `json:"sql"`
	// ModelSQL are statements that went to the in-process model instead.
	ModelSQL float64 `json:"model_sql"`
	Allocs   float64 `json:"allocs"`
	// KeysWithoutTTL are left in Redis at the end, of KeysAtEnd.
	KeysAtEnd      int64 `json:"keys_at_end"`
	KeysWithoutTTL int64 `json:"keys_without_ttl"`
	// Processor time in nanoseconds per decision, of this process and of servers
	// that tell theirs; 0 where unknown.
	ClientCPU   float64 `json:"client_cpu_ns"`
	RedisCPU    float64 `json:"redis_cpu_ns"`
	PostgresCPU float64 `json:"postgres_cpu_ns"`
	// RunQueue is how long this process' threads were ready to run and did not,
	// in nanoseconds per decision; 0 where unknown.
	RunQueue float64 `json:"run_queue_ns"`
	// Probe is exact, and was measured by itself: one caller, one request at a
	// time. Only the first round has it.
	Probe *Probe `json:"probe,omitempty"`
}

// Probe is the exact cost of single decisions.
type Probe struct {
	// First is the subject's first request.
	First ProbeCost `json:"first"`
	// Admitted and Rejected are means over later requests; nil where there were
	// none of the outcome.
	Admitted *ProbeCost `json:"admitted,omitempty"`
	Rejected *ProbeCost `json:"rejected,omitempty"`
}

// ProbeCost is the cost of one decision.
type ProbeCost struct {
	Commands   float64 `json:"commands"`
	RoundTrips float64 `json:"round_trips"`
	Bytes      float64 `json:"bytes"`
	SQL        float64 `json:"sql"`
	ModelSQL   float64 `json:"model_sql"`
	Allocs     float64 `json:"allocs"`
}

// Rolling is a run of tumbling windows judged as rolling ones of the same length.
type Rolling struct {
	WorstUnits int64 `json:"worst_units"` // admitted in the worst rolling window
	// Multiple is WorstUnits by the limit.
	Multiple float64 `json:"multiple"`
	Units    int64   `json:"units"` // certain leak over the limit, disjoint windows
	Possible int64   `json:"possible"`
}

// Settlement is what became of admitted requests that callers settle.
type Settlement struct {
	Commits   int64 `json:"commits"`
	Refunds   int64 `json:"refunds"` // failed work and deletions
	Abandoned int64 `json:"abandoned"`
	Errors    int64 `json:"errors"`
	// Latency of commits and refunds, service time.
	Latency Latency `json:"latency_ns"`
}

// Clause is a declared guarantee, evaluated.
type Clause struct {
	Property string `json:"property"`
	Formula  string `json:"formula"`
	// Bound in units, and the worst certain and possible amounts measured.
	Bound    int64 `json:"bound"`
	Certain  int64 `json:"certain"`
	Possible int64 `json:"possible"`
	// Verdict is "kept", "violated", "not exercised" or "undecided".
	Verdict string `json:"verdict"`
}

// The verdicts of a clause.
const (
	Kept         = "kept"
	Violated     = "violated"
	NotExercised = "not exercised"
	Undecided    = "undecided"
)

// Decide sets the verdict that follows from the bound and what was measured.
// exercised says whether the run could have broken the clause.
func (c *Clause) Decide(exercised bool) {
	switch {
	case c.Certain > c.Bound:
		c.Verdict = Violated
	case !exercised:
		c.Verdict = NotExercised
	case c.Possible <= c.Bound:
		c.Verdict = Kept
	default:
		c.Verdict = Undecided
	}
}

// Audit is the run's judgement of itself.
type Audit struct {
	Valid        bool     `json:"valid"`         // the correctness figures count
	TimingsValid bool     `json:"timings_valid"` // the timings count
	Reasons      []Reason `json:"reasons"`
}

// Reason is one finding of the audit.
type Reason struct {
	Code string `json:"code"` // e.g. "history-overflow"
	// Strikes is "correctness", "timings", "response" or "note".
	Strikes string `json:"strikes"`
	Detail  string `json:"detail"`
}

// Strike adds a finding and takes back what it touches.
func (a *Audit) Strike(code, strikes, detail string) {
	a.Reasons = append(a.Reasons, Reason{code, strikes, detail})
	switch strikes {
	case StrikesCorrectness:
		a.Valid = false
	case StrikesTimings:
		a.TimingsValid = false
	}
}

// ResponseValid reports whether response times count.
func (a *Audit) ResponseValid() bool {
	return a.TimingsValid && !slices.ContainsFunc(a.Reasons, func(r Reason) bool { return r.Strikes == StrikesResponse })
}

// What a finding strikes.
const (
	StrikesCorrectness = "correctness"
	StrikesTimings     = "timings"
	StrikesResponse    = "response" // response times in open loop; service times stand
	StrikesNote        = "note"
)
