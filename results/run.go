package results

import "github.com/quotabench/quotabench/internal/kit/stat"

// Run is one strategy in one round.
type Run struct {
	Identity
	// Options holds every option with its value.
	Options map[string]string `json:"options"`
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Workload is the public name of the workload.
	Workload string `json:"workload"`
	// Params are the parameters of the run.
	Params Params `json:"params"`
	// Repetition is the round, from 1.
	Repetition int `json:"repetition"`
	// Partial is set if the round was ended early.
	Partial bool `json:"partial"`
	Requests
	Disruption
	Rates
	// Placement is where harness and stores ran; absent in simulations.
	Placement *Placement `json:"placement,omitempty"`
	Latencies
	Machine
	Correctness
	// Cost of a decision.
	Cost Cost `json:"cost"`
	Promises
	// Audit is what speaks against the figures.
	Audit Audit `json:"audit"`
	// Meter holds the strategy's own figures, in its order.
	Meter []Measure `json:"meter,omitempty"`
	// Stored is what the strategy kept in its stores, by their names.
	Stored []Stored `json:"stored,omitempty"`
	// Trace is a hash of all that happened in a simulation, in hexadecimal: equal
	// on every machine and every store that carries the commands out.
	Trace string `json:"trace,omitempty"`
	// Paced is the same strategy in the same round once more, in an open loop at a
	// rate that all strategies of the measurement share. If a closed loop has one,
	// latency is taken from it, and throughput and correctness from the closed loop.
	Paced *Run `json:"paced,omitempty"`
}

// Identity says which strategy ran, and what is known of it whatever it did.
type Identity struct {
	// Strategy is its public name.
	Strategy string `json:"strategy"`
	// Form is what the strategy is in relation to its source: documented, hardened,
	// baseline and so on.
	Form string `json:"form"`
	// PerProcess is set if each instance of the application counts for itself:
	// then the limit holds in each alone.
	PerProcess bool `json:"per_process,omitempty"`
	// Outside is set if what decides is a service that was measured from outside, and
	// can be neither simulated nor explored.
	Outside bool `json:"outside,omitempty"`
	// Avoid is when not to use the strategy, in a sentence or two, as its notes say.
	Avoid string `json:"avoid,omitempty"`
	// NotExplored is why the strategy cannot be explored, in a few words; absent if it
	// can.
	NotExplored string `json:"not_explored,omitempty"`
}

// Requests counts what became of the requests of a round, or of all valid rounds together.
type Requests struct {
	// Issued requests: the admitted, the rejected and those that failed.
	Issued int64 `json:"issued"`
	// Admitted requests.
	Admitted int64 `json:"admitted"`
	// Rejected requests.
	Rejected int64 `json:"rejected"`
	// Errors counts requests without a decision.
	Errors int64 `json:"errors"`
	// ErrorKinds are the errors by what they came from; absent if there were none.
	ErrorKinds *ErrorKinds `json:"error_kinds,omitempty"`
	// Degraded decisions were made without their store; they are among the
	// admitted and the rejected.
	Degraded int64 `json:"degraded"`
	// Limited is whom the limit met, of a trace that was simulated; absent for other workloads.
	Limited *Limited `json:"limited,omitempty"`
	// RecoveredNS is the longest time in nanoseconds from the end of a planned outage to the first answer that
	// the store decided; absent if it decided none afterwards.
	RecoveredNS int64 `json:"recovered_ns,omitempty" parts:"max"`
	// FirstError is the text of the first error.
	FirstError string `json:"first_error,omitempty"`
	// FirstErrorCode is the word with which Redis begins that error, e.g. CROSSSLOT; empty for other errors.
	FirstErrorCode string `json:"first_error_code,omitempty"`
}

// Add counts those of another round, or of another process, too.
func (r *Requests) Add(requests *Requests) {
	stat.AddFields(r, requests)
	r.ErrorKinds = together(r.ErrorKinds, requests.ErrorKinds)
	if r.Limited == nil { // rounds of a trace are alike
		r.Limited = requests.Limited
	}
	if r.FirstError == "" {
		r.FirstError = requests.FirstError
		r.FirstErrorCode = requests.FirstErrorCode
	}
}

// Limited is whom the limit met.
type Limited struct {
	// Subjects of which a request was rejected.
	Subjects int64 `json:"subjects"`
	// Of counts all subjects that asked.
	Of int64 `json:"of_subjects"`
	// Most are those with the most rejected requests, the most first; at most [MostLimited].
	Most []LimitedSubject `json:"most"`
}

// MostLimited is how many subjects a record names that the limit met.
const MostLimited = 10

// LimitedSubject is one of them.
type LimitedSubject struct {
	// Subject is its name in the trace.
	Subject string `json:"subject"`
	// Issued requests.
	Issued int64 `json:"issued"`
	// Rejected ones among them.
	Rejected int64 `json:"rejected"`
}

// Disruption is what went wrong in a round, most of it as planned.
type Disruption struct {
	// DidNotReturn counts calls of the strategy that were given up, since they did not
	// return after their context was cancelled. Requests are among Errors.
	DidNotReturn int64 `json:"did_not_return,omitempty"`
	// DegradedAdmitted are those of Degraded that were admitted.
	DegradedAdmitted int64 `json:"degraded_admitted,omitempty"`
	// Outages that were planned, as they happened; absent for several sources.
	Outages []Span `json:"outages,omitempty"`
	// LostRequests counts requests to a store that the network lost as planned, before they took effect.
	LostRequests int64 `json:"lost_requests,omitempty"`
	// LostReplies counts requests that took effect, and whose reply the network lost as planned.
	LostReplies int64 `json:"lost_replies,omitempty"`
	// Overwritten counts the values in Redis that somebody else changed as planned.
	Overwritten int64 `json:"overwritten,omitempty"`
}

// Rates say how much was decided in which time, and how fast a bare client was next to it.
type Rates struct {
	// ElapsedNS is the length of the round in nanoseconds.
	ElapsedNS int64 `json:"elapsed_ns"`
	// ThroughputPerS is decisions per second.
	ThroughputPerS float64 `json:"throughput_per_s"`
	// ReferencePerS is the throughput of a bare client's INCR loop with the same
	// number of goroutines in the same round; 0 if there was none.
	ReferencePerS float64 `json:"reference_per_s"`
	// ReferenceChange is the throughput of the loop right after the run, divided by
	// that of the loop right before it; 0 if one of them is missing.
	ReferenceChange float64 `json:"reference_change,omitempty"`
	// Reference is what a bare client's INCR took in the same round: in the reference
	// loop if the run's loop is closed, and in an open loop of the same rate if
	// it is open, from the intended start.
	Reference *Distribution `json:"reference_ns,omitempty"`
}

// Latencies say how long decisions took, and when they were made.
type Latencies struct {
	// Service is the time from the actual start of a request to its answer.
	Service Latency `json:"service_ns"`
	// Response (open loop only) is the time from the intended start.
	Response *Latency `json:"response_ns,omitempty"`
	// Lateness (open loop only) of releases: the pacer's own part, and the wait
	// for a free worker.
	Lateness *Lateness `json:"lateness_ns,omitempty"`
	// Jobs are the latencies around rounds of background jobs, by the job's name; absent in simulations
	// and for several sources.
	Jobs []JobLatency `json:"jobs,omitempty"`
	// OverTime is how many decisions were made when; absent in simulations, whose series
	// have it, and for several sources.
	OverTime *OverTime `json:"over_time,omitempty"`
}

// Machine is what a run waited for, and what else the machines did in the meantime.
type Machine struct {
	// Waiting is what this program and the servers started for it waited for.
	Waiting *Waiting `json:"waiting,omitempty"`
	// PoolWait is the wait for connections, by store; absent in simulations.
	PoolWait []PoolWait `json:"pool_wait,omitempty"`
	// OthersShare is the share of the machine's processor time that other programs used. If the load came from several
	// processes, these are among them. It is absent if the system does not tell it.
	OthersShare float64 `json:"others_share,omitempty"`
	// ClockErrorNS is by how much the clock of a source may be wrong, in nanoseconds, of the worst one; absent for one
	// source.
	ClockErrorNS int64 `json:"clock_error_ns,omitempty"`
}

// Correctness is how far the decisions of a round are from the right ones.
type Correctness struct {
	// Leak is what was admitted over the limit.
	Leak Leak `json:"leak"`
	// LeakTiers splits the units of Leak by the tier that admitted them: those of the admissions answered
	// last, as many as had to be rejected. It has each tier that decided.
	LeakTiers map[string]int64 `json:"leak_tiers,omitempty"`
	// Rolling is set if a window ended in mid-run.
	Rolling *Rolling `json:"rolling,omitempty"`
	// FalseRejects are what was rejected although there was room.
	FalseRejects FalseRejects `json:"false_rejects"`
	// Settlement is set if callers commit and refund.
	Settlement *Settlement `json:"settlement,omitempty"`
	// Drift is how far the counters are from the truth; null if the strategy
	// shows no counter.
	Drift *Drift `json:"drift" jsonschema:"nullable"`
}

// Promises are the clauses that bound what a strategy may do wrong, and what became of them.
type Promises struct {
	// Guarantee holds the declared clauses, those of several rounds with the worst amounts of all.
	Guarantee []Clause `json:"guarantee"`
	// Record holds the clauses of the design record that the strategy comes from, in the same
	// way; absent if it promises none.
	Record []Clause `json:"record_promises,omitempty"`
	// NotPromised are faults that were injected and that no bound on the leak tolerates, or
	// "several regions"; absent if there are none, or if no bound is declared.
	NotPromised []string `json:"not_promised_under,omitempty"`
}
