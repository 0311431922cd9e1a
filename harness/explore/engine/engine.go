// Package engine is what searches for schedules stand on: an [Engine] runs one
// strategy with a few clients through one schedule after the other, and a search
// over it decides which. There is one in this process, over virtual time
// (harness/explore/inproc), and one on a PostgreSQL server
// (harness/explore/postgres).
//
// The package holds what engines have in common: the choices that a schedule is
// made of, what clients do, what they were told as a history that the oracle
// judges, and the timeline.
package engine

import (
	"errors"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/witness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Subject is the one that all clients share; others would only be independent.
const Subject = quota.Subject("s")

// Start is the first moment of every exploration: in the middle of a month, a day
// and an hour, so that no window is about to end, and years before any moment at
// which this code can run, so that the wall clock's time is told from virtual time.
var Start = time.Date(2015, time.November, 20, 10, 30, 0, 0, time.UTC)

// Errors of engines.
var (
	// ErrMisfit says that a choice is none that this run offers.
	ErrMisfit = errors.New("the schedule does not fit: strategy, options or version have changed since")
	// ErrNotDeterministic says that a strategy took another way in the second run of
	// one schedule: it depends on something that the engine does not control.
	ErrNotDeterministic = errors.New("strategy not deterministic")
)

// Engine runs schedules of one strategy. It is used from one goroutine.
type Engine interface {
	// Traits say what the engine can do. They do not change.
	Traits() Traits
	// Begin starts a fresh run. Every run begins the same.
	Begin() error
	// End releases the run.
	End() error
	// Enabled appends what can happen next. symmetric leaves out clients that could
	// as well be another one that has not started either.
	Enabled(buf []Choice, symmetric bool) []Choice
	// Serial is what happens next where clients come one after the other and nothing
	// fails. ok is false at the end.
	Serial() (c Choice, ok bool)
	// Step takes one step. It answers [ErrMisfit] to a choice that is not enabled.
	Step(c Choice) error
	// Retrace begins a run and takes all steps of a path. trail is what [Engine.Trail]
	// was before the last of them; nothing that it stands for is worked out again.
	Retrace(path []Choice, trail []Digest) error
	// Trail stands for what the actors remember.
	Trail() []Digest
	// State is a hash of everything that the future depends on. Engines whose Traits
	// have no State need not answer.
	State() (Digest, error)

	// Run is what has happened in this run so far.
	Run() *Run
	// Look describes where the run has got to.
	Look() Look
	// Holdings lists what is stored and may be wrong by itself.
	Holdings() ([]Holding, error)
	// Used asks the first instance what its tiers believe to be in use. ok is false
	// where it cannot say, or cannot be asked now.
	Used() (readings []quota.Reading, ok bool)
	// Columns are the actors of the run.
	Columns() []results.Column
	// Probe runs the clients one after the other, lets several windows pass at rest,
	// and asks once more. conclusive is false where no request was rejected before that.
	Probe() (admitted, conclusive bool, err error)
	// Witness watches all runs.
	Witness() *witness.Witness

	// Close releases the engine.
	Close() error
}

// Traits are what an engine can do.
type Traits struct {
	// Store names a server; empty for stores in this process.
	Store string
	// State is set where [Engine.State] answers. Otherwise every schedule is run to
	// its end.
	State bool
	// Deadlines is set where what is stored can expire.
	Deadlines bool
	// Splits is set where effect and reply of a command can be two steps.
	Splits bool
}

// Look is where a run has got to.
type Look struct {
	// AtRest is set where no call is in flight and no job has anything to do.
	AtRest bool
	// Ended is set where all scripts have ended and no further client has asked. Only
	// engines that are [Flights] set it.
	Ended bool
	// Stuck says which clients wait for something that cannot come, and for what.
	Stuck []string
	// Forgot lists instances of which a tier that rejects the subject has let it go
	// in the last step.
	Forgot []int
	// Faults that have happened.
	Faults []quota.Fault
	// SyncPeriod is the period of a periodic job that has run.
	SyncPeriod time.Duration
	// PeriodicJobs is set where there is one.
	PeriodicJobs bool
}

// Holding is one key or column as it is stored.
type Holding struct {
	Name string
	// Forever is set for a key without a deadline.
	Forever bool
	// Left is the time to live of one that has a deadline.
	Left time.Duration
	// Negative is the content of one that holds a count below zero, else empty.
	Negative string
}

// Run is what has happened in a run so far.
type Run struct {
	Truth    Truth
	Timeline Timeline
	// Aborts says after how many choices a server first ended a transaction of each
	// kind, and Waited whether a client has waited for another's lock.
	Aborts map[results.Property]int
	Waited bool
	// Paused is how much time has passed while a call or a round of a job was under way.
	Paused time.Duration
	// Aside is set once a goroutine of the strategy's own has been at the store, in any run.
	Aside bool
	// Left is how many goroutines a strategy has left after Close, at most, and Spent
	// why no further runs should begin; empty where they may.
	Left  int
	Spent string
}

// Timeline records steps, for people.
type Timeline struct {
	// Recording has steps described.
	Recording bool
	Steps     []results.Step
	// Line is the step being described, or nil.
	Line *results.Step
}

// Begin forgets the steps.
func (t *Timeline) Begin() { t.Steps, t.Line = nil, nil }

// Mark says that something other than a command happens.
func (t *Timeline) Mark(actor string, role results.Role, event results.StepEvent, text string) {
	if t.Line == nil {
		return
	}
	t.Line.Actor, t.Line.Role, t.Line.Event = actor, role, event
	if text != "" {
		t.Line.Command = text
	}
}

// Say adds what a caller was told.
func (t *Timeline) Say(text string) {
	if t.Line == nil {
		return
	}
	if t.Line.Outcome != "" {
		t.Line.Outcome += "; "
	}
	t.Line.Outcome += text
}

// End puts the line into the steps.
func (t *Timeline) End(at time.Duration, truth *Truth) {
	if t.Line == nil {
		return
	}
	t.Line.At, t.Line.InUse, t.Line.Limit = at, truth.InUse, truth.Policy.Limit
	t.Steps = append(t.Steps, *t.Line)
	t.Line = nil
}

// PanicError says that a strategy has panicked.
type PanicError = harness.PanicError

// UnfitError says that a strategy cannot be run in the way that is asked for.
type UnfitError struct{ Err error }

// Error implements error.
func (e *UnfitError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *UnfitError) Unwrap() error { return e.Err }

// What a PostgreSQL server can do to a transaction, which is no property of a
// strategy, and is counted and shown all the same.
const (
	// Deadlock: transactions waited for each other's locks, and PostgreSQL ended one.
	Deadlock results.Property = "deadlock"
	// SerializationFailure: PostgreSQL ended a transaction that did not fit into
	// any order with others.
	SerializationFailure results.Property = "serialization-failure"
)
