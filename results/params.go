package results

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
)

// Key identifies what a run repeats: runs with the same key are rounds of the
// same measurement. It is for comparing, not for showing.
func (r *Run) Key() string {
	return fmt.Sprintf("%s|%s", r.Params.Label, r.setting())
}

func (r *Run) setting() string {
	return fmt.Sprintf("%s|%s|%+v", r.Policy, r.Workload, r.Params.Compared())
}

// Params are the parameters of a run.
type Params struct {
	// Label is the strategy as the command line takes it, options included.
	Label string `json:"label"`
	Quota
	Load
	Connections
	Length
	// Workload holds the workload's own parameters by name, as they were given,
	// e.g. "popularity": "zipf:1.1". What was not given is left to the workload and
	// not listed.
	Workload map[string]string `json:"workload"`
	// Trouble is all that went wrong on purpose or changed in mid-run, each as WHERE:WHAT@WHEN, e.g. "redis:away@0.3-0.6".
	// Limit is the one at the start.
	Trouble trouble.List `json:"trouble,omitempty"`
	// Second is the second quota that each request was charged to, e.g. "10 routes: 100
	// requests per fixed 1m"; absent if there was none.
	Second string `json:"second_quota,omitempty"`
	// Sources is how many processes drove the load together; absent for one alone. See [File.Sources].
	Sources int `json:"sources,omitempty"`
	// Point holds the values of the parameters that a sweep varies, by name, e.g.
	// "workers": "64"; absent outside of a sweep.
	Point map[string]string `json:"point,omitempty"`
	// Stream is the fingerprint of the request stream; equal streams are equal.
	Stream string `json:"stream"`
}

// Quota is what a subject may use.
type Quota struct {
	// Limit in units per subject and window.
	Limit int64 `json:"limit"`
	// PolicyLimit is that of the policy's own, if it was tried with another one.
	PolicyLimit int64 `json:"policy_limit,omitempty"`
	// Unit is what is counted, plural.
	Unit string `json:"unit"`
	// Window is its kind, with its length if it has one, e.g. "calendar-month"
	// or "fixed 1m0s".
	Window string `json:"window"`
}

// Load is how requests are issued, and by how many.
type Load struct {
	// Loop is "closed" (each worker waits for its answer before it asks again) or
	// "open" (requests start when they are due).
	Loop string `json:"loop" jsonschema:"enum=closed,enum=open"`
	// Arrivals is how intended starts are spread, in open loop.
	Arrivals string `json:"arrivals,omitempty"`
	// RatePerS is intended requests per second, in open loop.
	RatePerS float64 `json:"rate_per_s,omitempty"`
	// RateFrom says where the rate comes from; absent if it was given, or follows from the
	// workload.
	RateFrom string `json:"rate_from,omitempty"`
	// Workers are the most requests in flight.
	Workers int `json:"workers"`
	// Instances of the application share the stores.
	Instances int `json:"instances"`
	// Subjects counts distinct ones.
	Subjects int `json:"subjects"`
}

// Connections are the clients of the stores.
type Connections struct {
	// Pool is connections per instance and store; 0 is the default, one per worker,
	// at most 64 to Redis and 16 to PostgreSQL.
	Pool int `json:"pool"`
	// Cold is set if every command, pipeline or transaction had a connection of its
	// own, opened for it.
	Cold bool `json:"cold_connections,omitempty"`
	// Retries are repetitions by the store's client after an error.
	Retries int `json:"client_retries"`
	// DecisionTimeoutNS is how long one decision could take, in nanoseconds, if that
	// was not the default.
	DecisionTimeoutNS int64 `json:"decision_timeout_ns,omitempty"`
}

// Length is how long a run lasts.
type Length struct {
	// Requests is the bound on requests per round; 0 means none.
	Requests int64 `json:"requests,omitempty"`
	// DurationNS is the bound on time per round in nanoseconds; 0 means none.
	DurationNS int64 `json:"duration_ns,omitempty"`
	// Speed is policy time per real time, if not 1.
	Speed float64 `json:"speed,omitempty"`
}

// Compared are the parameters that have to be equal for two runs to be comparable with each other: all except those of
// the strategy, those that follow from others, and how long was measured.
func (p Params) Compared() Params {
	p.Label = ""
	p.Unit = ""
	p.PolicyLimit = 0
	p.RateFrom = ""
	p.Subjects = 0
	p.Stream = ""
	p.Requests = 0
	p.DurationNS = 0
	return p
}

// WindowText is the window for people: lengths as in "rolling 1h"; Go writes
// 1h0m0s.
func (p *Params) WindowText() string {
	return format.List(strings.Fields(p.Window), " ", func(word string) string {
		length, err := time.ParseDuration(word)
		if err != nil {
			return word
		}
		return quota.LengthText(length)
	})
}
