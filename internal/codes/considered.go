package codes

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
