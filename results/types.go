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
	return fmt.Sprintf("%s|%s|%d|%s|%s|%s|%g|%d|%d|%d|%d|%g|%s|%s|%g|%s|%s|%s|%s|%s|%s|%q", r.Policy, r.Workload, p.Limit, p.Window,
		p.Loop, p.Arrivals, p.RatePerS, p.Workers, p.Instances, p.Pool, p.Retries, p.Speed,
		p.Popularity, p.Cost, p.Fill, given(p.OverQuota), given(p.FailShare), given(p.AbandonShare), given(p.MisjudgedShare),
		given(p.SettleNS), given(p.HoldNS), p.Outages)
}

// given is a parameter that may have been left to the workload.
func given[T any](p *T) string {
	if p == nil {
		return "default"
	}
	return fmt.Sprint(*p)
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
	// Pool is connections per instance and store; 0 is the default, one per worker,
	// at most 64 to Redis and 16 to PostgreSQL.
	Pool    int `json:"pool"`
	Retries int `json:"client_retries"`
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
	// Shares of admitted requests and mean times of uploads, where they were asked
	// for.
	FailShare      *float64 `json:"fail_share,omitempty"`
	AbandonShare   *float64 `json:"abandon_share,omitempty"`
	MisjudgedShare *float64 `json:"misjudged_share,omitempty"`
	SettleNS       *int64   `json:"settle_ns,omitempty"`
	HoldNS         *int64   `json:"hold_ns,omitempty"`
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
	// Parts split the distribution by outcome and deciding tier. A part has none.
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
