package oracle

import (
	"cmp"
	"slices"
)

// Kind is what an operation did to the units in use.
type Kind uint8

// The kinds of operation.
const (
	// Take asks for units.
	Take Kind = iota
	// Refund gives back units of an admitted request. A second refund of the same
	// request must not be recorded, or be recorded with 0 units: callers hold
	// nothing that it could give back. A refund that was tried again after an
	// error is one event, from its first call to its last reply.
	Refund
	// Commit settles a request at its actual size. Units is the reserved units less the
	// used ones: negative if more was used than reserved, which is a settlement overrun
	// and not leak.
	Commit
	// Expire is the end of a reservation whose holder has gone, such as an upload
	// that was abandoned, at the moment its holder learns of it. Call and Reply are both
	// that moment. Callers hold nothing from then on; the store may. With the outcome
	// Failed it is open what they hold: a commit was under way, or had failed.
	Expire

	kinds
)

// Outcome is the answer to the caller.
type Outcome uint8

// The outcomes.
const (
	// Admitted, for kinds other than Take: done.
	Admitted Outcome = iota
	// Rejected by the strategy with its store.
	Rejected
	// Failed is an error: no decision was made, but the store may have changed, at
	// any moment from the call on, even after the error was seen.
	Failed
	// RejectedDegraded is a rejection because the store could not be asked. It is
	// a rejection like any other, but the command that failed may have changed the
	// store, so it is open whether a counter contains it.
	RejectedDegraded
	// Short are the units of an admitted request that it was not granted. Such an
	// event stands next to that of the request, which has the units granted, and is
	// no request of its own. Call and reply are the request's.
	Short
	// Elsewhere is a rejection by another quota that the request is charged to as well. It
	// holds no unit of this one, and says nothing of its room. A counter that contains it
	// was charged for nothing.
	Elsewhere

	outcomes
)

// Event is one operation as its caller saw it.
type Event struct {
	// Call and Reply are nanoseconds since the run's epoch, at most 2^60 from it.
	Call, Reply int64
	// Units asked for or given back; see [Kind].
	Units   int64
	Subject uint32
	Kind    Kind
	Outcome Outcome
	// Tier that decided and Instance that was asked, numbered by the recorder. An instance of the number 255 is not told
	// apart from others.
	Tier     uint8
	Instance uint8
	// TakeCall and TakeReply are the call and the reply of the take that a refund,
	// a commit or an expiry is about: what it gives back belongs to the window that
	// the take was charged to. They are unused in takes. Both are 0 if the take
	// is not known, as for units that were there from the start: then the give-back
	// may be about any take of the subject before it. It lowers what is certain in
	// the window of its call, and frees no room for certain.
	TakeCall, TakeReply int64
}

// noInstance is the number of instances that are not told apart.
const noInstance = 255

// maxTime leaves room for doubled times and for the window around the last event.
const maxTime = 1 << 60

func (e *Event) wellFormed() bool {
	return e.Kind < kinds && e.Outcome < outcomes && e.Call <= e.Reply &&
		e.Call >= -maxTime && e.Reply <= maxTime && (e.Units >= 0 || e.Kind == Commit)
}

func (e *Event) admitted() bool { return e.Kind == Take && e.Outcome == Admitted }

func (e *Event) answered() bool { return e.Outcome != Failed && e.Outcome != Elsewhere }

func (e *Event) rejected() bool {
	return e.Kind == Take && (e.Outcome == Rejected || e.Outcome == RejectedDegraded || e.short())
}

// lastEffect is the last moment at which the event can have had its effect.
func (e *Event) lastEffect() int64 {
	if e.Outcome == Failed {
		return maxTime
	}
	return e.Reply
}

func (e *Event) short() bool { return e.Kind == Take && e.Outcome == Short }

// least is how many units there must be room for, so that the rejection of e is
// wrong: what falls short of a request is so by each unit.
func (e *Event) least() int64 {
	if e.short() {
		return min(1, e.Units)
	}
	return e.Units
}

// ordered returns the events by subject and call. It returns the slice it was
// given if that is in order already, and a copy otherwise.
func ordered(events []Event) []Event {
	if slices.IsSortedFunc(events, compare) {
		return events
	}
	out := slices.Clone(events)
	slices.SortFunc(out, compare)
	return out
}

// compare is a total order except for events that differ in nothing that
// matters. Most events differ in the first two.
func compare(a, b Event) int {
	if a.Subject != b.Subject {
		return cmp.Compare(a.Subject, b.Subject)
	}
	if a.Call != b.Call {
		return cmp.Compare(a.Call, b.Call)
	}
	return cmp.Or(
		cmp.Compare(a.Reply, b.Reply), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Outcome, b.Outcome),
		cmp.Compare(a.Units, b.Units), cmp.Compare(a.TakeCall, b.TakeCall), cmp.Compare(a.TakeReply, b.TakeReply),
	)
}
