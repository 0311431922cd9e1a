// Package engine is what searches for schedules stand on: an [Engine] runs one
// strategy with a few clients through one schedule after the other, and a search
// over it decides which. There is one in this process over virtual time (inproc),
// one for foreign code in a bubble of testing/synctest (foreign), one on a PostgreSQL
// server (postgres), and one for processes in any language (service).
//
// An engine is a port of ten methods. What all engines share is in [World]: which
// steps are enabled, with faults, ticks of the clock and clients that are alike;
// the budget of faults; what clients do; what they were told, as a history that the
// oracle judges; and the timeline.
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/guard"
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

// Engine runs schedules of one strategy. It is used from one goroutine. What it can do
// beyond that it says by further interfaces: [Forker], [Local] and [Brancher].
type Engine interface {
	// Common is what the engine shares with others. It is the same in all runs.
	Common() *World
	// Begin starts a fresh run. Every run begins the same.
	Begin() error
	// Step takes one step. It answers [ErrMisfit] to a transition that is not enabled.
	Step(choice Choice) error
	// End releases the run.
	End() error
	// Close releases the engine.
	Close() error

	// Snapshot is where the run has got to, valid until the next step.
	Snapshot() *Snapshot
	// Holdings lists what is stored, valid until it is asked for again.
	Holdings() ([]Holding, error)
	// Crashable reports whether the end of an instance makes more of a difference than
	// that of one call after an effect.
	Crashable(instance int) bool
	// Used asks the first instance what its tiers believe to be in use. ok is false
	// if it cannot say, or cannot be asked now.
	Used() (readings []quota.Reading, ok bool)
	// State is a hash of everything that the future depends on, if the Traits have State.
	State() (Digest, error)
}

// Traits are what an engine can do.
type Traits struct {
	// Store names a server; empty for stores in this process.
	Store string
	// State is set if [Engine.State] says something. Otherwise every schedule is run to
	// its end.
	State bool
	// Deadlines is set if what is stored can expire.
	Deadlines bool
	// Splits is set if effect and reply of a command can be two steps.
	Splits bool
	// Preempts is set if the places of actors tell who is interrupted.
	Preempts bool
	// Foreign is set for code that goes by a clock of its own.
	Foreign bool
	// Wall is set for code that goes by the wall clock: what one run shows may be the end of
	// a window, and repeated runs do not show it.
	Wall bool
}

// Place is where an actor is within what it does.
type Place uint8

// The places. One that is asking or answering is in flight: whoever goes on instead of it
// preempts it.
const (
	// Done: it has ended, or has died.
	Done Place = iota
	// Unborn: a client whose first request has not come.
	Unborn
	// Between: a client between two actions, or a job between two rounds.
	Between
	// Waiting: in a call, for something that cannot come at once; or a job that is due.
	Waiting
	// Asking: it is about to go on, e.g. to send a command.
	Asking
	// Answering: its command took effect, and it has not read the reply.
	Answering
)

// InFlight reports whether others preempt an actor that is there.
func (p Place) InFlight() bool { return p == Asking || p == Answering }

// Actor is one that takes steps: a client, a job, or a goroutine of the strategy.
type Actor struct {
	ID int
	// Client is nil for others.
	Client *Client
	// Instance that it belongs to, with how many clients and jobs that has, and how often
	// it has ended and started anew.
	Instance, Members, Lives int
	At                       Place
	// Ready is set if it can take a step, and Sleeps if it cannot before time has passed.
	Ready, Sleeps bool
	// Fails is set if its command may fail, Repeats if it may be sent again, and Delays if the
	// reply may come late.
	Fails, Repeats, Delays bool
	// Idle is set for a job between two rounds, and Prompts if the next one may begin at any
	// moment.
	Idle, Prompts bool
	// Text says what it waits for.
	Text fmt.Stringer
}

// Snapshot is where a run has got to.
type Snapshot struct {
	Now    time.Time
	Actors []Actor
	// Wakes is when the first of those that sleep goes on, if that is known. Waits is set
	// if something may happen at a moment that is not known.
	Wakes time.Time
	Waits bool
	Signs
}

// Signs are what an engine tells of a run besides where its actors are.
type Signs struct {
	// Stuck says which clients wait for something that cannot come, and for what.
	Stuck []string
	// Forgot lists instances of which a tier that rejects the subject has let it go in the
	// last step.
	Forgot []int
	// SyncPeriod is the period of a periodic job that has run, and PeriodicJobs is set if
	// there is one.
	SyncPeriod   time.Duration
	PeriodicJobs bool
}

// atRest reports whether no call is in flight and no job has anything to do.
func (s *Snapshot) atRest() bool {
	return !slices.ContainsFunc(s.Actors, func(actor Actor) bool { return actor.At >= Waiting })
}

// Look is where a run has got to.
type Look struct {
	// AtRest is set if no call is in flight and no job has anything to do.
	AtRest bool
	// Ended is set if all scripts have ended and no further client has asked.
	Ended bool
	// Faults that have happened.
	Faults []quota.Fault
	// Ticked is set if time has passed.
	Ticked bool
	Signs
}

// Holding is one key or column as it is stored.
type Holding struct {
	Name string
	// Own is set if the name is known to hold the subject: a key of which there is one for each subject.
	Own bool
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
	// Silent is set once a service has answered a request without a command: what it went by was not seen.
	Silent bool
	// Crowd is how many other subjects have asked a service in each run in which thousands were to, at least.
	Crowd int64
	// Paused is how much time has passed while a call or a round of a job was under way.
	Paused time.Duration
	// Aside is set once a goroutine of the strategy's own has been at the store, in any run.
	Aside bool
	// Left is how many goroutines a strategy has left after Close, at most, and Spent
	// why no further runs should begin; empty if they may.
	Left  int
	Spent string
}

// Timeline records steps, for people.
type Timeline struct {
	// Recording has steps described.
	Recording bool
	Steps     []results.Step
	// Columns are the actors of the run, while it is recorded.
	Columns []results.Column
	// Line is the step being described, or nil.
	Line *results.Step
	// Whole is set while a request is one step.
	Whole bool
	// Stored is what the store holds after each step.
	Stored Stored
}

// Begin forgets the steps.
func (t *Timeline) Begin() {
	t.Steps = nil
	t.Columns = nil
	t.Line = nil
	t.Stored.begin()
}

// Column adds an actor.
func (t *Timeline) Column(column results.Column) {
	if t.Recording {
		t.Columns = append(t.Columns, column)
	}
}

// Start begins the line of the next step.
func (t *Timeline) Start() {
	if t.Recording {
		t.Line = &results.Step{Number: len(t.Steps) + 1, Column: -1}
		t.Stored.open()
	}
}

// By says whose step it is.
func (t *Timeline) By(name string, role codes.Role, column int, event codes.StepEvent) {
	if t.Line != nil {
		t.Line.Column = column
		t.Mark(name, role, event, "")
	}
}

// Mark says that something other than a command happens.
func (t *Timeline) Mark(actor string, role codes.Role, event codes.StepEvent, text string) {
	if t.Line == nil {
		return
	}
	t.Line.Actor = actor
	t.Line.Role = role
	t.Write(text, "", event)
}

// Write adds to the line. What is empty leaves it unchanged.
func (t *Timeline) Write(command, reply string, event codes.StepEvent) {
	if t.Line == nil {
		return
	}
	if command != "" {
		t.Line.Command = command
	}
	if reply != "" {
		t.Line.Reply = reply
	}
	if event != "" {
		t.Line.Event = event
	}
}

// Add adds an operation and its reply to what is on the line already.
func (t *Timeline) Add(command, reply string, event codes.StepEvent) {
	step := t.Line
	if step == nil {
		return
	}
	if t.Whole && command != "" && step.Reply != "" {
		step.Command = step.Command + " = " + step.Reply
		step.Reply = ""
	}
	if command != "" && step.Command != "" && step.Command != "starts" {
		command = step.Command + "; " + command
	}
	if step.Event.Injected() {
		event = step.Event
	}
	t.Write(command, reply, event)
}

// Say adds what a caller was told.
func (t *Timeline) Say(told codes.Told, text string) {
	if t.Line == nil {
		return
	}
	if t.Line.Outcome != "" {
		t.Line.Outcome += "; "
	}
	t.Line.Outcome += text
	t.Line.Told = cmp.Or(t.Line.Told, told)
}

// Fail adds the error that a caller was told.
func (t *Timeline) Fail(err error) { t.Say(codes.ToldError, "error: "+err.Error()) }

// End puts the line into the steps.
func (t *Timeline) End(at time.Duration, truth *Truth) {
	if t.Line == nil {
		return
	}
	t.Line.At = at
	t.Line.InUse = truth.InUse
	t.Line.Limit = truth.Policy.Limit
	t.Line.Stored = t.Stored.after(at)
	t.Steps = append(t.Steps, *t.Line)
	t.Line = nil
}

// PanicError says that a strategy has panicked.
type PanicError = guard.PanicError

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
