package results

import "github.com/quotabench/quotabench/quota"

// Considered is a strategy that a run which named none thought of, and what became of it.
type Considered struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Outcome says what became of it.
	Outcome Outcome `json:"outcome" jsonschema:"enum=taken,enum=excluded,enum=untried"`
	// Stage decided that; of one that was taken, the stage that a reader must know of, or empty.
	Stage Stage `json:"stage,omitempty"`
	// Cause is why, as a code; of one that was taken, what a reader must know of it, or empty.
	Cause Cause `json:"cause,omitempty"`
	// Condition that is not met, e.g. "p99<5ms"; empty if the cause is another one.
	Condition string `json:"condition,omitempty"`
	// Detail is the subject of the cause, e.g. the figure that does not meet the condition, or the error of the strategy.
	Detail string `json:"detail,omitempty"`
	// Advice is how to get the strategy measured, e.g. with which program; empty for none.
	Advice string `json:"advice,omitempty"`
	// Units of a leak in the worst window, or the number that was measured instead.
	Units int64 `json:"units,omitempty"`
	// Pct is a share in percent: of the limit for a leak, of valid requests for false rejects, of all requests for errors.
	Pct float64 `json:"pct,omitempty"`
	// Schedule is what a search found.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Command shows it again; empty if nothing does.
	Command string `json:"command,omitempty"`
}

// Schedule is an order of store commands that speaks against a strategy, without its steps.
type Schedule struct {
	// Steps that it takes.
	Steps int `json:"steps"`
	// Clients that share one subject.
	Clients int `json:"clients"`
	// Instances of the application that they belong to.
	Instances int `json:"instances"`
	// Limit of the subject in units.
	Limit int64 `json:"limit"`
	// Faults that happen in it.
	Faults []quota.Fault `json:"faults"`
}

// Outcome is what became of a strategy that a run thought of.
type Outcome string

// The outcomes.
const (
	// Taken: it was measured, or was to be.
	Taken Outcome = "taken"
	// Excluded: something speaks against it.
	Excluded Outcome = "excluded"
	// Untried: nothing can be said of it.
	Untried Outcome = "untried"
)

// Stage is where a strategy left.
type Stage string

// The stages, in their order.
const (
	StageDeclaration Stage = "declaration" // what the strategy says of itself
	StageStore       Stage = "store"       // what is there to run it on
	StageSearch      Stage = "search"      // all schedules of a few clients
	StageSimulation  Stage = "simulation"  // virtual time, across the end of a window
	StageOutage      Stage = "outage"      // a run in which Redis goes away
	StageNumber      Stage = "number"      // no more than a few are measured
	StageRequirement Stage = "requirement" // a condition on a figure of the run
)

// Cause is why a strategy was not taken.
type Cause string

// The causes.
const (
	// OtherWindows: it serves no policy with such a window.
	OtherWindows Cause = "other-windows"
	// OtherPolicies: it cannot serve the policy for what Detail says.
	OtherPolicies Cause = "other-policies"
	// NeverGivesBack: it cannot take units back.
	NeverGivesBack Cause = "never-gives-back"
	// NeverResets: what is used up is not given again when a window ends.
	NeverResets Cause = "never-resets"
	// NotPromised: it declares no bound on its leak under the fault in Detail.
	NotPromised Cause = "not-promised"
	// CannotRun: it cannot be measured here for what Detail says.
	CannotRun Cause = "cannot-run"
	// OverLimit: it admits more than the limit.
	OverLimit Cause = "leak"
	// RejectsValid: it rejects requests for which there is room.
	RejectsValid Cause = "false-reject"
	// BreaksGuarantee: it breaks what it declares.
	BreaksGuarantee Cause = "guarantee"
	// EndsInErrors: requests end in errors.
	EndsInErrors Cause = "errors"
	// Unsound: it cannot be used for what Detail says.
	Unsound Cause = "unsound"
	// OutOfTime: the time was up.
	OutOfTime Cause = "out-of-time"
	// Outranked: as many as are measured come before it.
	Outranked Cause = "outranked"
	// NotMet: the condition in Condition does not hold.
	NotMet Cause = "not-met"
)
