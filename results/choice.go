package results

import "github.com/quotabench/quotabench/quota"

// Choice is the answer to the question which strategies serve a policy in a given
// setting: those that do, and what rules out each of the others.
type Choice struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Kind is "choice".
	Kind string `json:"kind" jsonschema:"enum=choice"`
	// Question is what was asked.
	Question Question `json:"question"`
	// Candidates are at most three strategies that no stage ruled out, the best first.
	Candidates []Candidate `json:"candidates"`
	// Others were not ruled out either, and rank behind the candidates.
	Others []Candidate `json:"others"`
	// RuledOut holds every strategy with the first reason that speaks against it.
	RuledOut []RuledOut `json:"ruled_out"`
	// NotTested are strategies of which nothing can be said here.
	NotTested []Untested `json:"not_tested"`
	// Stages that ran, in their order.
	Stages []Stage `json:"stages"`
	// Notes say what the figures do not cover.
	Notes []string `json:"notes"`
	// Interrupted is set if the user, and not the budget, ended it.
	Interrupted bool `json:"interrupted"`
}

// Question is what a choice was asked for.
type Question struct {
	// Policy in words that the command line reads, e.g. "20 links per calendar month".
	Policy string `json:"policy"`
	// Limit in units per subject and window.
	Limit int64 `json:"limit"`
	// Unit is what is counted, plural.
	Unit string `json:"unit"`
	// Instances of the application in each region.
	Instances int `json:"instances"`
	// Regions that the application runs in.
	Regions int `json:"regions"`
	// Skew is how far the clocks of instances are apart in simulations, in nanoseconds.
	Skew int64 `json:"skew_ns,omitempty"`
	// RatePerS is the requests per second of the whole application.
	RatePerS float64 `json:"rate_per_s"`
	// Subjects that the requests are for.
	Subjects int64 `json:"subjects"`
	// ToleratedLeak is how many units over the limit one subject may be given in one
	// window.
	ToleratedLeak int64 `json:"tolerated_leak_units"`
	// P99 is the longest 99th percentile of a decision in nanoseconds; 0 if none
	// was asked for.
	P99 int64 `json:"p99_ns,omitempty"`
	// Outage says what has to happen while Redis cannot be reached: "any", "open",
	// "closed" or "survive".
	Outage string `json:"outage" jsonschema:"enum=any,enum=open,enum=closed,enum=survive"`
	// Settles is set if callers commit, refund or abandon what they were given.
	Settles bool `json:"settles"`
	// Faults that the search had happen, beside the passing of time.
	Faults []quota.Fault `json:"faults"`
}

// Candidate is a strategy that no stage ruled out.
type Candidate struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Doc is one line on what it does.
	Doc string `json:"doc"`
	// Stores that it needs, by name.
	Stores []string `json:"stores"`
	// Deployment says where its stores have to be, where that matters; empty elsewhere.
	Deployment string `json:"deployment,omitempty"`
	// P99 of a decision in nanoseconds at Rate, measured on one machine; 0 if P99Counts is not set.
	P99 int64 `json:"p99_ns"`
	// P99Counts is false if that percentile is not measurable here.
	P99Counts bool `json:"p99_counts"`
	// P99Rounds are the rounds at that rate.
	P99Rounds Rounds `json:"p99_rounds"`
	// RatePerS is the rate at which it was measured, in requests per second; 0 if it was not.
	RatePerS float64 `json:"rate_per_s"`
	// ModelledP99 is that of the simulated regions in nanoseconds; 0 if there were none.
	ModelledP99 int64 `json:"modelled_p99_ns,omitempty"`
	// ThroughputPerS is decisions per second of callers that never pause; 0 if not measurable here.
	ThroughputPerS float64 `json:"throughput_per_s"`
	// ThroughputRounds are the rounds of those callers.
	ThroughputRounds Rounds `json:"throughput_rounds"`
	// RoundTrips to any store, per decision.
	RoundTrips float64 `json:"round_trips"`
	// Bounded is set if it leaks, or rejects wrongly, within what it declares and the question tolerates.
	Bounded bool `json:"bounded,omitempty"`
	// Evidence is what each stage showed, in their order.
	Evidence []Evidence `json:"evidence"`
	// Caveats are what was not shown of it.
	Caveats []string `json:"caveats"`
}

// Rounds behind a timing.
type Rounds struct {
	// Kept are those that the timing is of.
	Kept int `json:"kept"`
	// Run are all of them.
	Run int `json:"run"`
}

// EvidenceKind says what evidence consists of.
type EvidenceKind string

// The kinds of evidence.
const (
	// EvidenceDeclared: the strategy says so of itself.
	EvidenceDeclared EvidenceKind = "declared"
	// EvidenceSchedule: an order of store commands, found by a search.
	EvidenceSchedule EvidenceKind = "schedule"
	// EvidenceMeasured: a figure of a run on the wall clock.
	EvidenceMeasured EvidenceKind = "measured"
	// EvidenceSimulated: a figure of virtual time, with modelled latencies.
	EvidenceSimulated EvidenceKind = "simulated"
)

// Evidence is what speaks for or against a strategy.
type Evidence struct {
	// Kind says what it consists of.
	Kind EvidenceKind `json:"kind" jsonschema:"enum=declared,enum=schedule,enum=measured,enum=simulated"`
	// Text is one clause with its figures, without a full stop.
	Text string `json:"text"`
	// Command shows it again; empty for what is declared.
	Command string `json:"command,omitempty"`
	// Token repeats a schedule; empty for other kinds.
	Token string `json:"token,omitempty"`
	// Steps of that schedule.
	Steps int `json:"steps,omitempty"`
}

// RuledOut is a strategy with the first reason that speaks against it.
type RuledOut struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Reason against it.
	Reason Evidence `json:"reason"`
}

// Untested is a strategy of which nothing can be said.
type Untested struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Reason is one clause.
	Reason string `json:"reason"`
	// Command tests it, where there is one.
	Command string `json:"command,omitempty"`
}

// Stage is a part of the choice.
type Stage struct {
	// Name says what was done, e.g. "search".
	Name string `json:"name"`
	// Entered counts the strategies that took part.
	Entered int `json:"entered"`
	// Left counts those of them that were not ruled out by it.
	Left int `json:"left"`
	// Cut is set if the budget, or an interruption, ended it before its end.
	Cut bool `json:"cut,omitempty"`
}
