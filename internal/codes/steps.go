// Package codes has the words that records have for what happened: in the steps of a schedule, to strategies that a run
// considered, on which cores a run took place, and which findings its audit and its searches made.
package codes

// Role says what an actor is.
type Role string

// The roles.
const (
	RoleClient   Role = "client"
	RoleJob      Role = "job"
	RoleClock    Role = "clock"
	RoleStore    Role = "store"
	RoleInstance Role = "instance"
)

// StepEvent says what happens in a step.
type StepEvent string

// The events of a step.
const (
	EventStart     StepEvent = "start"      // the client comes
	EventCommand   StepEvent = "command"    // a command or statement takes effect
	EventReply     StepEvent = "reply"      // its reply arrives, if that is a step of its own
	EventResume    StepEvent = "resume"     // the actor goes on after a wait
	EventRound     StepEvent = "round"      // a job's round begins
	EventTick      StepEvent = "tick"       // time passes
	EventCrash     StepEvent = "crash"      // a client, or an instance, dies
	EventLostReply StepEvent = "lost-reply" // the command took effect, and its reply does not come
	EventRetry     StepEvent = "retry"      // the client library sends the command again
	EventOutage    StepEvent = "outage"     // the store cannot be reached
	EventEviction  StepEvent = "eviction"   // the store drops a key
)

// Told is what a caller is told.
type Told string

// What a caller can be told.
const (
	ToldAdmitted     Told = "admitted"
	ToldRejected     Told = "rejected"
	ToldCommitted    Told = "committed"
	ToldRefunded     Told = "refunded"
	ToldLimitChanged Told = "limit-changed" // of an operator
	ToldTooLate      Told = "too-late"      // to settle
	ToldError        Told = "error"
)

// faults are the events that are faults which befall an actor, as people read them.
var faults = map[StepEvent]string{
	EventCrash: "crash", EventLostReply: "lost reply", EventRetry: "retry", EventOutage: "store unreachable",
}

// Fault is how a fault that befalls an actor is written; empty for other events.
func (e StepEvent) Fault() string { return faults[e] }

// Injected reports whether the event is a fault that befalls an actor.
func (e StepEvent) Injected() bool { return e.Fault() != "" }
