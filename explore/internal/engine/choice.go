package engine

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
)

// ChoiceKind is a kind of step that a schedule can take.
type ChoiceKind byte

// The kinds of step.
const (
	StepActor  ChoiceKind = 's' // an actor goes on to its next operation
	PromptJob  ChoiceKind = 'p' // a periodic job's round begins
	CrashCall  ChoiceKind = 'k' // one caller dies
	CrashHost  ChoiceKind = 'i' // an instance dies with its callers, jobs and memory, and starts anew
	LoseReply  ChoiceKind = 'l' // the command took effect, and its connection ends before the reply
	DelayReply ChoiceKind = 'd' // the command took effect, the reply comes when the client has given it up
	RetryReply ChoiceKind = 'r' // the client library sends the command again, and takes the second reply
	FailBefore ChoiceKind = 'o' // the store cannot be reached: no effect, an error
	TickClock  ChoiceKind = 't' // time moves on to a deadline
	EvictKey   ChoiceKind = 'e' // the store drops a key
	DropScript ChoiceKind = 'f' // the store drops its scripts
	EmptyStore ChoiceKind = 'n' // the store starts anew without data, and all connections end
	Ask        ChoiceKind = 'q' // all scripts have ended, and one more client asks for one unit without a break
)

// Choice is one step of a schedule. It means the same in every run of the
// schedule that it is part of.
type Choice struct {
	Kind ChoiceKind
	// ID is an actor's, or an instance's for CrashHost, or a deadline's for
	// TickClock: see the constants below.
	ID  int
	Key string
}

// Faults that befall services alone, by their own client of a real store.
const (
	FaultTimeout     quota.Fault = "timeout"      // the reply to a command comes after the client's timeout
	FaultScriptFlush quota.Fault = "script-flush" // a store drops its scripts
	FaultRestart     quota.Fault = "restart"      // a store starts anew without its data
)

// injection is a kind of step that injects a fault.
type injection struct {
	kind  ChoiceKind
	fault quota.Fault
	event codes.StepEvent
	// at is where its client or job must be; Done for a step of neither.
	at Place
	// able reports whether it can befall one that is there; nil for every one.
	able func(*Actor) bool
	// err is what its client or job is told at once; nil if it is told nothing, or not yet.
	err error
	// text is what the timeline has for a reply, or says of the store or instance.
	text string
}

// injections are all of them, in the order of records, and for one client in that in which they are tried. A new fault
// is a kind and a row here, and an event with a text in internal/codes. Its name is in package quota if every engine
// has it, and in this file if services alone do: see [OfServices]. Engines in this process need code for it unless it
// tells its client an error, which the row has; the proxy of services always needs code.
var injections = [...]injection{
	{kind: CrashCall, fault: quota.FaultCrash, event: codes.EventCrash, at: Answering, able: func(actor *Actor) bool {
		return actor.Client != nil
	}},
	{kind: CrashHost, fault: quota.FaultCrash, event: codes.EventCrash, text: "ends and starts anew"},
	{kind: LoseReply, fault: quota.FaultLostReply, event: codes.EventLostReply, at: Answering, err: errLostReply,
		text: "no reply"},
	{kind: RetryReply, fault: quota.FaultRetry, event: codes.EventRetry, at: Answering, able: func(actor *Actor) bool {
		return actor.Repeats
	}},
	{kind: TickClock, fault: quota.FaultClock, event: codes.EventTick},
	{kind: EvictKey, fault: quota.FaultEviction, event: codes.EventEviction, text: "evicts "},
	{
		kind: FailBefore, fault: quota.FaultOutage, event: codes.EventOutage, at: Asking, able: func(actor *Actor) bool {
			return actor.Fails
		},
		err: errUnreachable, text: "error",
	},
	{
		kind: DelayReply, fault: FaultTimeout, event: codes.EventLostReply, at: Answering, able: func(actor *Actor) bool {
			return actor.Delays
		},
		text: "no reply in time",
	},
	{kind: DropScript, fault: FaultScriptFlush, event: codes.EventEviction, text: "drops its scripts"},
	{kind: EmptyStore, fault: FaultRestart, event: codes.EventEviction, text: "starts anew without data"},
}

// Errors that injected faults give, as a client library reports them.
var (
	errLostReply   = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errUnreachable = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
)

func (c Choice) injection() *injection {
	for i := range injections {
		if injections[i].kind == c.Kind {
			return &injections[i]
		}
	}
	return nil
}

// Fault is the one that the step injects; empty if it injects none.
func (c Choice) Fault() quota.Fault {
	if injection := c.injection(); injection != nil {
		return injection.fault
	}
	return ""
}

// Actor is who takes the step. ok is false for steps that are of no actor.
func (c Choice) Actor() (id int, ok bool) {
	if c.Kind == StepActor || c.Kind == PromptJob {
		return c.ID, true
	}
	if injection := c.injection(); injection != nil && injection.at != Done {
		return c.ID, true
	}
	return 0, false
}

// Err is what the fault of the step tells its client or job at once; nil for other steps.
func (c Choice) Err() error {
	if injection := c.injection(); injection != nil {
		return injection.err
	}
	return nil
}

// Befalls reports whether the step injects a fault that can befall the actor where it is.
func (c Choice) Befalls(actor *Actor) bool {
	injection := c.injection()
	return injection != nil && injection.befalls(actor)
}

func (x *injection) befalls(actor *Actor) bool {
	return x.at != Done && x.at == actor.At && (x.able == nil || x.able(actor))
}

// Faults are those that engines inject, in the order of records.
var Faults = func() (out []quota.Fault) {
	for _, injection := range injections {
		if !slices.Contains(out, injection.fault) {
			out = append(out, injection.fault)
		}
	}
	return out
}()

// Budget is how often each of [Faults] has happened in a run. It has room for them.
type Budget [len(injections)]int

func (b *Budget) of(fault quota.Fault) *int { return &b[slices.Index(Faults, fault)] }

// Digest folds it in.
func (b *Budget) Digest(digest *Digest) {
	for _, n := range b {
		digest.Num(uint64(n))
	}
}

// OfServices reports whether a fault befalls services alone.
func OfServices(fault quota.Fault) bool { return !slices.Contains(quota.Faults(), fault) }

// HasFaultAt reports whether a fault may happen to a call that is there: [Asking], before the effect of its command, or
// [Answering], between the effect and the reply.
func (s *Setup) HasFaultAt(at Place) bool {
	return slices.ContainsFunc(injections[:], func(x injection) bool { return x.at == at && s.Has(x.fault) })
}

// Deadlines to tick to.
const (
	TickExpiry = iota // the next key expires
	TickWindow        // the next window of any clock ends
	TickWaiter        // the next sleep ends, or the next job is due
	TickHalf          // half of a window passes, or of the time for one unit of a bucket
	TickBefore        // the millisecond before the next window of any clock ends
	TickLast          // the millisecond of the deadline of the next key that expires, in which it is still there
	TickRest          // nobody asks for a week and many windows
	TickSecond        // the next second window of any clock ends
	TickKinds
)

// String is the form that a token holds.
func (c Choice) String() string {
	if c.Kind == EvictKey {
		return string(rune(c.Kind)) + url.QueryEscape(c.Key) // keys may hold blanks
	}
	return string(rune(c.Kind)) + strconv.Itoa(c.ID)
}

// ParseChoice reads what [Choice.String] writes.
func ParseChoice(text string) (Choice, error) {
	if text == "" {
		return Choice{}, fmt.Errorf("a step without a kind")
	}
	choice := Choice{Kind: ChoiceKind(text[0])}
	if choice.Kind == EvictKey {
		key, err := url.QueryUnescape(text[1:])
		choice.Key = key
		if err != nil || choice.String() != text {
			return Choice{}, fmt.Errorf("step %q names no key", text)
		}
		return choice, nil
	}
	if choice.injection() == nil && choice.Kind != StepActor && choice.Kind != PromptJob && choice.Kind != Ask {
		return Choice{}, fmt.Errorf("step %q is of no known kind", text)
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n < 0 || choice.Kind == TickClock && n >= TickKinds {
		return Choice{}, fmt.Errorf("step %q names no actor", text)
	}
	choice.ID = n
	if choice.String() != text {
		return Choice{}, fmt.Errorf("step %q is written in another way", text)
	}
	return choice, nil
}
