// Package results is the record of what was measured: its versioned JSON form,
// and everything that is computed from it alone, such as summaries over rounds,
// the terminal table and plots. It knows nothing of how figures came about.
package results

import (
	"fmt"
	"time"
)

// SchemaVersion is the version of the JSON form that this package writes.
const SchemaVersion = 1

// File is one results.json.
type File struct {
	Schema int `json:"schema"`
	// Kind is [Measured] or [Simulated].
	Kind       string     `json:"kind"`
	Seed       uint64     `json:"seed"`
	Stores     Stores     `json:"stores"`
	Provenance Provenance `json:"provenance"`
	// Workload describes what was replayed or generated, for the header of reports.
	Workload Workload `json:"workload"`
	// Skipped lists strategies that could not take part.
	Skipped []Skipped `json:"skipped"`
	Runs    []Run     `json:"runs"`
	// Interrupted is set where the measurement was ended before its last round.
	Interrupted bool `json:"interrupted"`
}

// The kinds of a file.
const (
	Measured  = "measured"
	Simulated = "simulated"
)

// Stores says where the stores came from.
type Stores struct {
	Redis    Store `json:"redis"`
	Postgres Store `json:"postgres"`
}

// Store is one store as it was found or started.
type Store struct {
	// Kind is "url", "process", "container", "embedded", "model" or "none".
	Kind string `json:"kind"`
	// Detail is one line for people, e.g. why this kind was chosen. It holds no
	// password.
	Detail     string `json:"detail,omitempty"`
	Version    string `json:"version,omitempty"`
	Durability string `json:"durability,omitempty"`
}

// Provenance is what differs from machine to machine.
type Provenance struct {
	Host     Host              `json:"host"`
	Time     time.Time         `json:"time"`
	Commit   string            `json:"commit"`
	Versions map[string]string `json:"versions"` // "quotabench", "go", "redis", ...
	Command  string            `json:"command,omitempty"`
}

// Host is the machine that measured.
type Host struct {
	Name  string `json:"name"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	CPUs  int    `json:"cpus"`
	Model string `json:"model,omitempty"`
}

// Workload describes the request stream.
type Workload struct {
	Name string `json:"name"`
	// Notes are lines for the header of reports, e.g. how subjects were assigned.
	Notes []string `json:"notes,omitempty"`
	Trace *Trace   `json:"trace,omitempty"`
}

// Trace describes a replayed trace.
type Trace struct {
	File   string `json:"file"` // base name
	Format string `json:"format"`
	Rows   int    `json:"rows"`
	// Used rows were issued; Dropped rows had no usable time or subject.
	Used    int `json:"used"`
	Dropped int `json:"dropped"`
	// Damaged lists every row that could not be read whole, used or not.
	Damaged []DamagedRow `json:"damaged"`
}

// DamagedRow is a row of a trace that could not be read whole.
type DamagedRow struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Used   bool   `json:"used"`
}

// Skipped is a strategy that did not take part, and why.
type Skipped struct {
	Strategy string `json:"strategy"`
	Reason   string `json:"reason"`
}

// Run is one strategy in one round.
type Run struct {
	Strategy   string            `json:"strategy"`
	Form       string            `json:"form"`
	Options    map[string]string `json:"options"`
	Policy     string            `json:"policy"`
	Workload   string            `json:"workload"`
	Params     Params            `json:"params"`
	Repetition int               `json:"repetition"` // from 1
	Partial    bool              `json:"partial"`

	Issued   int64 `json:"issued"`
	Admitted int64 `json:"admitted"`
	Rejected int64 `json:"rejected"`
	Errors   int64 `json:"errors"`
	// Degraded decisions were made without their store; they are among the
	// admitted and the rejected.
	Degraded int64 `json:"degraded"`
	// FirstError is the text of the first error.
	FirstError string `json:"first_error,omitempty"`

	ElapsedNS      int64   `json:"elapsed_ns"`
	ThroughputPerS float64 `json:"throughput_per_s"`
	// ReferencePerS is the throughput of a bare client's INCR loop with the same
	// number of goroutines in the same round; 0 where there was none.
	ReferencePerS float64 `json:"reference_per_s"`

	// Latency is the response time from the intended start in open loop, and
	// the service time in closed loop.
	Latency Latency `json:"latency_ns"`
	// Service (open loop only) is counted from the actual start.
	Service *Latency `json:"service_ns,omitempty"`
	// Lateness (open loop only) of releases: the pacer's own part, and the wait
	// for a free worker.
	Lateness *Lateness `json:"lateness_ns,omitempty"`

	Leak Leak `json:"leak"`
	// Rolling is set where a window ended in mid-run.
	Rolling      *Rolling         `json:"rolling,omitempty"`
	FalseRejects FalseRejects     `json:"false_rejects"`
	Settlement   *Settlement      `json:"settlement,omitempty"`
	Drift        *Drift           `json:"drift"` // null where the strategy shows no counter
	Cost         Cost             `json:"cost"`
	Guarantee    []Clause         `json:"guarantee"`
	Audit        Audit            `json:"audit"`
	Meter        map[string]int64 `json:"meter,omitempty"`
}

// Key identifies what a run repeats: runs with the same key are rounds of the
// same measurement. It is for comparing, not for showing.
func (r *Run) Key() string {
	return fmt.Sprintf("%s|%s", r.Params.Label, r.setting())
}

// setting is what has to be equal for two runs to be comparable with each other.
func (r *Run) setting() string {
	p := &r.Params
	return fmt.Sprintf("%s|%s|%d|%s|%s|%s|%g|%d|%d|%d|%d|%g", r.Policy, r.Workload, p.Limit, p.Window,
		p.Loop, p.Arrivals, p.RatePerS, p.Workers, p.Instances, p.Pool, p.Retries, p.Speed)
}

// Params are the parameters of a run.
type Params struct {
	// Label is the strategy as the command line takes it, options included.
	Label     string  `json:"label"`
	Limit     int64   `json:"limit"`
	Unit      string  `json:"unit"`
	Window    string  `json:"window"` // e.g. "calendar-month", "fixed 1m0s"
	Loop      string  `json:"loop"`   // [ClosedLoop] or [OpenLoop]
	Arrivals  string  `json:"arrivals,omitempty"`
	RatePerS  float64 `json:"rate_per_s,omitempty"`
	Workers   int     `json:"workers"`
	Instances int     `json:"instances"`
	Subjects  int     `json:"subjects"`
	Pool      int     `json:"pool"`
	Retries   int     `json:"client_retries"`
	// Requests is the bound on requests per round, DurationNS that on time; 0
	// means none.
	Requests   int64   `json:"requests,omitempty"`
	DurationNS int64   `json:"duration_ns,omitempty"`
	Speed      float64 `json:"speed,omitempty"`
	// Popularity, Cost, Fill and OverQuota are those that were asked for; empty
	// leaves them to the workload.
	Popularity string   `json:"popularity,omitempty"`
	Cost       string   `json:"cost,omitempty"`
	Fill       float64  `json:"fill,omitempty"`
	OverQuota  *float64 `json:"over_quota,omitempty"`
	// Outages are planned ones, e.g. "redis:0.3-0.6".
	Outages []string `json:"outages,omitempty"`
	// Stream is the fingerprint of the request stream; equal streams are equal.
	Stream string `json:"stream"`
}

// The two ways to issue requests.
const (
	// ClosedLoop: each worker waits for its answer before it asks again.
	ClosedLoop = "closed"
	// OpenLoop: requests start when they are due, whatever the answers do.
	OpenLoop = "open"
)

// Latency is a distribution of durations in nanoseconds.
type Latency struct {
	// Samples counts all values, those in AtLeast and OutOfRange included.
	Samples int64 `json:"samples"`
	P50     int64 `json:"p50"`
	P90     int64 `json:"p90"`
	P99     int64 `json:"p99"`
	P999    int64 `json:"p999"`
	P9999   int64 `json:"p9999"`
	Max     int64 `json:"max"`
	// Stalls counts separate events (more than 10 ms apart) behind the samples
	// at or above p99 and p99.9; -1 where unknown.
	StallsP99  int `json:"stalls_p99"`
	StallsP999 int `json:"stalls_p999"`
	// AtLeast counts operations that had not finished: they entered with the
	// time they had taken so far.
	AtLeast int64 `json:"at_least,omitempty"`
	// OutOfRange counts values that the histogram could not hold. Percentiles
	// take them as longer than [MaxDuration] and never read above it.
	OutOfRange int64 `json:"out_of_range,omitempty"`
	// Histogram is the HDR histogram, V2 compressed encoding, base64.
	Histogram string `json:"histogram,omitempty"`
	// Parts split the distribution by outcome and deciding tier.
	Parts []LatencyPart `json:"parts,omitempty"`
}

// LatencyPart is the latency of one outcome at one tier.
type LatencyPart struct {
	Outcome string `json:"outcome"` // "admitted", "rejected" or "error"
	Tier    string `json:"tier,omitempty"`
	Latency
}

// Lateness of releases in open loop, in nanoseconds.
type Lateness struct {
	PacerP50  int64 `json:"pacer_p50"`
	PacerP99  int64 `json:"pacer_p99"`
	WorkerP50 int64 `json:"worker_p50"`
	WorkerP99 int64 `json:"worker_p99"`
	// BacklogHalf and BacklogEnd are requests released and not yet started, half
	// way and at the end of the schedule.
	BacklogHalf int64 `json:"backlog_half"`
	BacklogEnd  int64 `json:"backlog_end"`
	Saturated   bool  `json:"saturated"`
}

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

// Audit is the run's judgement of itself.
type Audit struct {
	Valid        bool     `json:"valid"`         // the correctness figures count
	TimingsValid bool     `json:"timings_valid"` // the timings count
	Reasons      []Reason `json:"reasons"`
}

// Reason is one finding of the audit.
type Reason struct {
	Code string `json:"code"` // e.g. "history-overflow"
	// Strikes is "correctness", "timings" or "note".
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

// What a finding strikes.
const (
	StrikesCorrectness = "correctness"
	StrikesTimings     = "timings"
	StrikesNote        = "note"
)
